package runtime_test

import (
	"context"
	"expvar"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// Whatever a number is, its name fits a label.
func TestLabels(t *testing.T) {
	t.Parallel()
	label := regexp.MustCompile(`^[a-z_]+$`)
	for i := range 256 {
		for _, test := range []struct {
			name  fmt.Stringer
			known bool
		}{
			{observe.Verdict(i), i <= int(observe.VerdictUnavailable)},
			{rule.Source(i), i <= int(rule.SourceProcess)},
			{observe.ErrorClass(i), i <= int(observe.ErrorClass(decide.ClassSharded))},
			{runtime.FailurePolicy(i), i <= int(runtime.FailLocal)},
		} {
			if text := test.name.String(); len(text) == 0 || len(text) > 20 || test.known && (!label.MatchString(text) || text == "unknown") {
				t.Errorf("%T(%d) is %q", test.name, i, text)
			}
		}
	}
}

// Decisions by rule and verdict, for a program's /debug/vars.
func ExampleObserver() {
	decisions := new(expvar.Map) // expvar.NewMap("rate_limit_decisions") in a program
	limiter := inMemory(observing(observe.Observer{
		Decision: func(_ context.Context, ev observe.DecisionEvent) { decisions.Add(ev.Rule+"."+ev.Verdict.String(), 1) },
	}))

	search := &runtime.Rule{Name: "search", Prefix: "search:", Window: time.Minute, Max: 2}
	for range 5 {
		_, _ = limiter.Take(context.Background(), search.Limit(runtime.NewKey().AddString("ann")))
	}
	fmt.Println(decisions)
	// Output: {"search.admitted": 2, "search.refused": 3}
}
