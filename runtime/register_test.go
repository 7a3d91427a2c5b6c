package runtime_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// panicOf returns what a function panics with, or "".
func panicOf(f func()) (text string) {
	defer func() {
		if reason := recover(); reason != nil {
			text = fmt.Sprint(reason)
		}
	}()
	f()
	return ""
}

// Rules whose keys start alike, or of one name, must have the same terms, whichever is first.
func TestRegisterTerms(t *testing.T) {
	t.Parallel()
	type change = func(*runtime.Rule)
	own := func(r *runtime.Rule) { r.Prefix = "own:" }
	bucket := func(r *runtime.Rule) { r.Algorithm, r.Burst = runtime.TokenBucket, 5 }
	queue := func(r *runtime.Rule) { r.Algorithm, r.Wait = runtime.LeakyBucket, time.Second }
	period := func(r *runtime.Rule) { r.Algorithm, r.Window, r.Period = runtime.FixedWindow, 0, rule.Month }
	for name, c := range map[string]struct {
		first, second change
		want          string // of the panic, or "" for none
	}{
		"a copy":            {},
		"what is no term":   {second: func(r *runtime.Rule) { r.Message, r.Fail, r.Invalid, r.Source, r.Mode = "m", 1, 1, "s", 1 }},
		"another wait":      {second: func(r *runtime.Rule) { r.Wait = time.Second }},
		"burst is max":      {first: func(r *runtime.Rule) { r.Algorithm = runtime.TokenBucket }, second: bucket},
		"default buckets":   {first: func(r *runtime.Rule) { r.Algorithm = runtime.SlidingCounter }, second: func(r *runtime.Rule) { r.Algorithm, r.Buckets = runtime.SlidingCounter, rule.EqualBuckets(60) }},
		"waits in one line": {first: queue, second: func(r *runtime.Rule) { queue(r); r.Wait = time.Minute }},
		"names, one prefix": {first: own, second: func(r *runtime.Rule) { r.Name, r.Prefix = "other", "own:" }},
		"prefixes":          {second: own},
		"other names":       {second: func(r *runtime.Rule) { r.Name, r.Max = "other", 6 }},
		"invalid":           {second: func(r *runtime.Rule) { r.Max = -1 }},
		"max":               {second: func(r *runtime.Rule) { r.Max = 6 }, want: "max is 5 and 6"},
		"a call's max":      {second: func(r *runtime.Rule) { r.Max = 0 }, want: "max is 5 and 0"},
		"window":            {second: func(r *runtime.Rule) { r.Window = time.Second }, want: "window is 1m0s and 1s"},
		"algorithm":         {second: func(r *runtime.Rule) { r.Algorithm = runtime.FixedWindow }, want: "algorithm is sliding-log and fixed-window"},
		"storage":           {second: func(r *runtime.Rule) { r.Storage = runtime.StoragePacked }, want: "storage is zset and packed"},
		"resolution":        {second: func(r *runtime.Rule) { r.Resolution = time.Second }, want: "resolution is 0s and 1s"},
		"burst":             {first: bucket, second: func(r *runtime.Rule) { bucket(r); r.Burst = 6 }, want: "burst is 5 and 6"},
		"line":              {first: func(r *runtime.Rule) { r.Algorithm = runtime.LeakyBucket }, second: queue, want: "wait is 0s and 1s"},
		"block":             {second: func(r *runtime.Rule) { r.Block = time.Hour }, want: "block is 0s and 1h0m0s"},
		"hold":              {second: func(r *runtime.Rule) { r.Hold = true }, want: "hold is false and true"},
		"lease":             {second: func(r *runtime.Rule) { r.Lease = time.Second }, want: "lease is 0s and 1s"},
		"period":            {first: period, second: func(r *runtime.Rule) { period(r); r.Period = rule.Day }, want: "period is month and day"},
		"zone":              {first: period, second: func(r *runtime.Rule) { period(r); r.Zone = "Europe/Berlin" }, want: "zone is  and Europe/Berlin"},
		"anchor":            {first: period, second: func(r *runtime.Rule) { period(r); r.Anchor = 15 }, want: "anchor is 0 and 15"},
		"keep":              {first: period, second: func(r *runtime.Rule) { period(r); r.Keep = 3 }, want: "keep is 0 and 3"},
		"reserve":           {first: period, second: func(r *runtime.Rule) { period(r); r.Reserve = time.Minute }, want: "reserve is 0s and 1m0s"},
		"debt":              {first: period, second: func(r *runtime.Rule) { period(r); r.Debt = rule.DebtCarry }, want: "debt is default and carry"},
		"adaptive":          {second: func(r *runtime.Rule) { r.Adaptive = halving{} }, want: "being adaptive is false and true"},
		"one name":          {second: func(r *runtime.Rule) { own(r); r.Max = 6 }, want: "have one name"},
		"one prefix":        {first: own, second: func(r *runtime.Rule) { own(r); r.Name, r.Max = "other", 6 }, want: `start their keys with "n:own:"`},
		"the default":       {second: func(r *runtime.Rule) { r.Prefix, r.Name, r.Max = "rate_limit:api:", "other", 6 }, want: `start their keys with "n:rate_limit:api:"`},
	} {
		first, second := runtime.Rule{Name: "api", Source: "a.go: A.Get", Window: time.Minute, Max: 5}, runtime.Rule{Name: "api", Source: "b.go: B.Get", Window: time.Minute, Max: 5}
		for r, change := range map[*runtime.Rule]change{&first: c.first, &second: c.second} {
			if change != nil {
				change(r)
			}
		}
		limiter := inMemory(runtime.WithNamespace("n"))
		limiter.Register(&first)
		limiter.Register(&first)
		for range 2 { // who recovers is told again
			got := panicOf(func() { limiter.Register(&second) })
			if (got != "") != (c.want != "") || !strings.Contains(got, c.want) || c.want != "" && !strings.Contains(got, "a.go: A.Get") {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		}
		if got := panicOf(func() { inMemory().Register(&second) }); got != "" {
			t.Errorf("%s, on another limiter: %s", name, got)
		}
		limiter = inMemory()
		limiter.Register(&second)
		if got := panicOf(func() { limiter.Register(&first) }); (got != "") != (c.want != "") {
			t.Errorf("%s, the other way round: %q", name, got)
		}
	}
}

// Goroutines that register one of two rules each: the first holds, and all others are told.
func TestRegisterTermsAtOnce(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{1, 2, 8, 256} {
		limiter, told := inMemory(), make([]string, callers)
		concurrently(callers, func(i int) {
			told[i] = panicOf(func() { limiter.Register(&runtime.Rule{Name: "api", Window: time.Minute, Max: int64(1 + i%2)}) })
		})
		held := map[bool]map[int]bool{true: {}, false: {}}
		for i, text := range told {
			held[text == ""][i%2] = true
		}
		if len(held[true]) != 1 || len(held[false]) != min(callers-1, 1) {
			t.Errorf("%d callers: %v", callers, held)
		}
	}
}

// halving is a Scaler.
type halving struct{}

func (halving) Factor(rule.Load) float64 { return 0.5 }
