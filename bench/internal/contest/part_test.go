package contest

import (
	"regexp"
	"slices"
	"testing"

	"github.com/rategen/rategen/bench/internal/limiters"
)

func TestPart(t *testing.T) {
	part := Part{Only: regexp.MustCompile("packed|denial known"), Cases: regexp.MustCompile("1 caller, 1,000 keys|^size")}
	if err := (Plan{Part: part}).Check(); err != nil {
		t.Error(err)
	}
	if part.Whole() || !(Part{}).Whole() {
		t.Error("only the zero value is all there is")
	}
	var shared, local []string
	for _, l := range part.shared(append(limiters.Leased(), slices.Concat(limiters.Rategen(), limiters.Peers())...)) {
		shared = append(shared, l.Name)
	}
	for _, l := range part.local(limiters.Locals(limiters.Server{})) {
		local = append(local, l.Name)
	}
	if want := []string{limiters.RategenPacked, limiters.Base, limiters.OwnScript, limiters.ScriptFloor, limiters.Floor}; !slices.Equal(shared, want) {
		t.Errorf("over Redis: got %q, want %q", shared, want)
	}
	if want := []string{limiters.LocalRecalled, limiters.LocalBase}; !slices.Equal(local, want) {
		t.Errorf("in memory: got %q, want %q", local, want)
	}
	for heading, want := range map[string]bool{
		overRedis + Case{1, 1000, Distinct}.String():  true,
		inMemory + Case{1, 1000, Full}.String():       true,
		overRedis + Case{64, 1000, Distinct}.String(): false,
		overRedis + Case{1, 1, Hot}.String():          false,
		sizeOfKey:                                     true,
	} {
		if got := part.heading(heading); got != want {
			t.Errorf("%s: %v", heading, got)
		}
	}
}

// TestPartCheck wants a part to have something in it.
func TestPartCheck(t *testing.T) {
	for _, test := range []struct {
		only, cases string
		fault       string
	}{
		{"zset", "over Redis, 256 callers, one hot key", ""},
		{"sliding-log$", "in memory", ""}, // is in memory alone
		{"lease", "size", ""},
		{"", "curve over Redis, 16 callers", ""},
		{"zzset", "", `no limiter's name matches "zzset"`},
		{"", "32 callers", `no case's heading matches "32 callers": headings are as "over Redis, 1 caller, 1,000 keys admitted", "in memory, 1 caller, 1,000 keys admitted" and "size of a key in Redis"`},
	} {
		var part Part
		if test.only != "" {
			part.Only = regexp.MustCompile(test.only)
		}
		if test.cases != "" {
			part.Cases = regexp.MustCompile(test.cases)
		}
		fault := ""
		if err := (Plan{Part: part, Callers: []int{16}}).Check(); err != nil {
			fault = err.Error()
		}
		if fault != test.fault {
			t.Errorf("%q, %q: got %q, want %q", test.only, test.cases, fault, test.fault)
		}
	}
}
