package operate

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
)

// TestCallsOf adds up what five processes tell, of which one is silent and one tells nothing.
func TestCallsOf(t *testing.T) {
	t.Parallel()
	rules := []bridge.ProcessRule{{Name: "s"}, {Name: "r"}}
	told := func(seconds float64, asked int64, keys ...bridge.KeyCalls) bridge.Process {
		return bridge.Process{Calls: bridge.ProcessCalls{Seconds: seconds, Asked: asked, Decided: [4]int64{asked, 1, 2, 3}, Keys: keys, Rules: [][5]int64{{1, asked, 1, 0, 3}, {0, 0, 0, 2, 0}, {9, 5, 5, 5, 5}, {-1, 5, 5, 5, 5}}}, Rules: rules}
	}
	silent := told(1, 1000, bridge.KeyCalls{Rule: "r", Key: "gone", Count: 1000})
	silent.Silent = true
	got := CallsOf([]bridge.Process{told(1, 100, bridge.KeyCalls{Rule: "r", Key: "hot", Count: 80}, bridge.KeyCalls{Rule: "s", Key: "hot", Count: 5}),
		told(2, 100, bridge.KeyCalls{Rule: "r", Key: "hot", Count: 20}), told(4, 0), silent, {}})
	want := Calls{Processes: 3, Decided: [4]float64{150, 1.75, 3.5, 5.25}, Asked: 150, Rules: []RuleCalls{{"s", [4]float64{0, 0, 3.5, 0}}, {"r", [4]float64{150, 1.75, 0, 5.25}}}, Keys: []HotKey{
		{Rule: "r", Key: "hot", PerSecond: 90, Share: 0.6, Processes: 2}, {Rule: "s", Key: "hot", PerSecond: 5, Share: 1.0 / 30, Processes: 1},
	}}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })); diff != "" {
		t.Error(diff)
	}
}

// TestRemedy names a remedy that the rule may have.
func TestRemedy(t *testing.T) {
	t.Parallel()
	const split = "a key with more parts"
	for want, r := range map[string]runtime.Rule{
		"lease=1s":    {Window: time.Minute, Max: 100},
		"lease=100ms": {Window: time.Second, Algorithm: runtime.TokenBucket},
		split:         {Window: time.Second, Max: 5, Algorithm: runtime.Concurrency},
		"a longer lease, and a max of which a lease is many calls": {Window: time.Minute, Max: 5, Lease: time.Second},
	} {
		r.Name = "r"
		if got := Remedy(&r); got != want {
			t.Errorf("%q in place of %q", got, want)
		}
	}
	for _, r := range []runtime.Rule{{Name: "r", Window: time.Minute, Max: 5, Block: time.Second}, {Name: "r", Window: 5 * time.Millisecond, Max: 5}} {
		if got := Remedy(&r); got != split {
			t.Errorf("%q of %+v", got, r)
		}
	}
}

// TestHoldersOf finds who holds permits of a key, also where keys are told as hashes.
func TestHoldersOf(t *testing.T) {
	t.Parallel()
	holds := func(name string, since int64, rule, key string) bridge.Process {
		return bridge.Process{Name: name, Build: "v1", Silent: name == "c", Calls: bridge.ProcessCalls{Permits: []bridge.KeyPermits{{Rule: rule, Key: key, Permits: 2, Since: time.Unix(since, 0)}}}}
	}
	all := HoldersOf([]bridge.Process{holds("a", 20, "r", "k"), holds("b", 10, "r", "hash"), holds("c", 15, "r", "k"), holds("d", 1, "r", "other"), holds("e", 1, "s", "k")}, "r", "k", "hash")
	var got []string
	for _, h := range all {
		got = append(got, h.String())
	}
	want := []string{"2 by b v1 since 1970-01-01T00:00:10Z", "2 by c v1 since 1970-01-01T00:00:15Z, which gives no sign of life: they lapse", "2 by a v1 since 1970-01-01T00:00:20Z"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestClockText says on which side of Redis's a clock is.
func TestClockText(t *testing.T) {
	t.Parallel()
	for behind, want := range map[time.Duration]string{90 * time.Second: "1m30s behind", -90 * time.Second: "1m30s ahead"} {
		if got := ClockText(behind); got != want {
			t.Errorf("%v: %q", behind, got)
		}
	}
}

// TestWarnOf says the same of many rules for the first ones alone, and of how many more it is to be said.
func TestWarnOf(t *testing.T) {
	t.Parallel()
	var said []string
	c := &Core{Warn: func(text string) { said = append(said, text) }}
	c.WarnOf([]string{"a", "b%d"})
	c.WarnOf([]string{"1", "2", "3", "4", "5", "6", "7"})
	if want := []string{"a", "b%d", "1", "2", "3", "4", "5", "and the same is to be said of 2 more rules"}; !slices.Equal(said, want) {
		t.Errorf("%q", said)
	}
}
