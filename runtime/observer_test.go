package runtime_test

import (
	"context"
	"expvar"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

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

// A recorder receives every limit of each call under its context, with the
// numbers that callers are told.
func TestRecorder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type event = observe.DecisionEvent
		const second, day = time.Second, 24 * time.Hour
		burst := &runtime.Rule{Name: "burst", Window: second, Max: 10, Burst: 2, Algorithm: runtime.TokenBucket}
		daily := &runtime.Rule{Name: "daily", Window: day, Max: 5, Algorithm: runtime.FixedWindow}
		tried := &runtime.Rule{Name: "tried", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow}
		limiter := inMemory()
		var got []event
		ctx := observe.WithRecorder(context.Background(), func(ev event) { got = append(got, ev) })
		for range 3 {
			_, _ = limiter.Take(ctx, burst.Limit(nil), daily.Limit(nil).WithCost(2), tried.Limit(nil))
		}
		want := []event{
			{Rule: "burst", Remaining: 1, ResetAfter: second / 10},
			{Rule: "daily", Remaining: 3, ResetAfter: day},
			{Rule: "tried", Remaining: 0, ResetAfter: time.Hour, MoreAfter: time.Hour},

			{Rule: "burst", Remaining: 0, ResetAfter: second / 5},
			{Rule: "daily", Remaining: 1, ResetAfter: day},
			{Rule: "tried", Verdict: observe.VerdictShadowRefused, RetryAfter: time.Hour, ResetAfter: time.Hour},

			{Rule: "burst", Verdict: observe.VerdictRefused, RetryAfter: second / 10, ResetAfter: second / 5},
			{Rule: "daily", Verdict: observe.VerdictRefused, Remaining: 1, RetryAfter: day, ResetAfter: day},
			{Rule: "tried", Verdict: observe.VerdictNotCharged, Remaining: 1},
		}
		for i := range want {
			ev, r := &want[i], []*runtime.Rule{burst, daily, tried}[i%3]
			ev.Source, ev.Algorithm, ev.Mode, ev.Window, ev.Max = rule.SourceStore, r.Algorithm, r.Mode, r.Window, r.Max
			ev.Cost, ev.Limit = []int64{1, 2, 1}[i%3], []int64{2, 5, 1}[i%3]
		}
		want[8].Source = rule.SourceNone
		same(t, "recorded", want, got)
	})
}

// A recorder is called for each of several calls, beside one that its context
// had before, and for no call under another context.
func TestRecordersNest(t *testing.T) {
	t.Parallel()
	rule := perHour(2)
	limiter := inMemory()
	var outer, inner []string
	add := func(to *[]string) func(observe.DecisionEvent) {
		return func(ev observe.DecisionEvent) { *to = append(*to, fmt.Sprint(ev.Verdict, ev.Remaining)) }
	}
	ctx := observe.WithRecorder(context.Background(), add(&outer))
	equal(t, "context with a nil recorder", observe.WithRecorder(ctx, nil), ctx)
	limiter.TakeEach(observe.WithRecorder(ctx, add(&inner)), rule.Limit(nil), rule.Limit(nil))
	_, _ = limiter.Take(ctx, rule.Limit(nil))
	_, _ = limiter.Take(context.Background(), rule.Limit(nil))
	_, _ = limiter.Peek(ctx, rule.Limit(nil))
	same(t, "the inner one", []string{"admitted 1", "admitted 0"}, inner)
	same(t, "the outer one", []string{"admitted 1", "admitted 0", "refused 0"}, outer)
}

// Several observers receive the same events, each with the call's context.
func TestObservers(t *testing.T) {
	t.Parallel()
	type name struct{}
	ctx := context.WithValue(context.Background(), name{}, "value")
	var seen [2]recorder[any]
	opts := []runtime.Option{quiet, runtime.WithObserver(nil)}
	for i := range seen {
		add := func(ctx context.Context, ev any) {
			seen[i].add(ev)
			if ctx.Value(name{}) != "value" {
				t.Errorf("%+v has not the context of its call", ev)
			}
		}
		opts = append(opts, observing(observe.Observer{
			Decision: func(ctx context.Context, ev observe.DecisionEvent) { add(ctx, ev) },
			Failure:  func(ctx context.Context, ev observe.FailureEvent) { add(ctx, ev) },
		}))
	}
	shadow := &runtime.Rule{Name: "slow", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow}
	capped := append(opts, runtime.WithProcessCap(&runtime.Rule{Name: "process", Window: time.Hour, Max: 100}))
	for _, limiter := range []*runtime.Limiter{runtime.New(runtime.NewMemoryStore(), opts...), runtime.New(nil, opts...), runtime.New(runtime.NewMemoryStore(), capped...)} {
		_, _ = limiter.Take(ctx, narrow.Limit(nil))
		_, _ = limiter.Take(ctx, narrow.Limit(nil), shadow.Limit(nil))
		_, _ = limiter.Take(ctx, shadow.Limit(nil).WithCost(2))
		_, _ = limiter.Take(ctx, narrow.Limit(runtime.NewKey().AddInvalid("nil")))
		limiter.TakeEach(ctx, shadow.Limit(nil))
	}
	if len(seen[0].all()) == 0 {
		t.Error("no events")
	}
	same(t, "the second observer", seen[0].all(), seen[1].all(), cmpopts.EquateComparable(), cmpopts.EquateErrors())
}
