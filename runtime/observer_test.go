package runtime_test

import (
	"context"
	"expvar"
	"fmt"
	"regexp"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/failure"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// Every limit of a decided call is told of once, with what became of it.
func TestObserverDecision(t *testing.T) {
	t.Parallel()
	const took = 3 * time.Millisecond
	type event struct {
		Rule    string
		Verdict runtime.Verdict
		Source  runtime.Source
		Cost    int64
		Latency time.Duration
	}
	hidden := *narrow
	hidden.Name, hidden.Prefix, hidden.Mode = "hidden", "hidden:", runtime.ModeShadow
	local, closed := *narrow, *wide
	local.Fail, closed.Fail = runtime.FailLocal, runtime.FailClosed
	for _, test := range []struct {
		name   string
		broken bool
		take   func(context.Context, *runtime.Limiter)
		want   []event
	}{
		{"admitted and denied", false, func(ctx context.Context, l *runtime.Limiter) {
			for range 2 {
				_, _ = l.Take(ctx, wide.Limit(nil).WithCost(2), narrow.Limit(nil))
			}
		}, []event{
			{"wide", runtime.VerdictAdmitted, runtime.SourceStore, 2, took}, {"narrow", runtime.VerdictAdmitted, runtime.SourceStore, 1, took},
			{"wide", runtime.VerdictNotCharged, runtime.SourceStore, 2, took}, {"narrow", runtime.VerdictDenied, runtime.SourceStore, 1, took},
		}},
		{"shadow", false, func(ctx context.Context, l *runtime.Limiter) {
			for range 2 {
				_, _ = l.Take(ctx, wide.Limit(nil), hidden.Limit(nil))
			}
		}, []event{
			{"wide", runtime.VerdictAdmitted, runtime.SourceStore, 1, took}, {"hidden", runtime.VerdictAdmitted, runtime.SourceStore, 1, took},
			{"wide", runtime.VerdictAdmitted, runtime.SourceStore, 1, took}, {"hidden", runtime.VerdictShadowDenied, runtime.SourceStore, 1, took},
		}},
		{"never", false, func(ctx context.Context, l *runtime.Limiter) {
			_, _ = l.Take(ctx, wide.Limit(nil), narrow.Limit(nil).WithCost(2))
			_, _ = l.Take(ctx, hidden.Limit(nil).WithCost(2))
		}, []event{
			{"wide", runtime.VerdictNotCharged, runtime.SourceNone, 1, 0}, {"narrow", runtime.VerdictDenied, runtime.SourceNone, 2, 0},
			{"hidden", runtime.VerdictShadowDenied, runtime.SourceNone, 2, 0},
		}},
		{"each", false, func(ctx context.Context, l *runtime.Limiter) {
			l.TakeEach(ctx, narrow.Limit(nil), narrow.Limit(nil), wide.Limit(nil))
		}, []event{
			{"narrow", runtime.VerdictAdmitted, runtime.SourceStore, 1, took}, {"narrow", runtime.VerdictDenied, runtime.SourceStore, 1, took},
			{"wide", runtime.VerdictAdmitted, runtime.SourceStore, 1, took},
		}},
		{"local", true, func(ctx context.Context, l *runtime.Limiter) {
			for range 2 {
				_, _ = l.Take(ctx, local.Limit(nil))
			}
		}, []event{{"narrow", runtime.VerdictAdmitted, runtime.SourceLocal, 1, 0}, {"narrow", runtime.VerdictDenied, runtime.SourceLocal, 1, 0}}},
		{"open", true, func(ctx context.Context, l *runtime.Limiter) { _, _ = l.Take(ctx, wide.Limit(nil)) },
			[]event{{"wide", runtime.VerdictAdmitted, runtime.SourceFailure, 1, 0}}},
		{"closed", true, func(ctx context.Context, l *runtime.Limiter) { _, _ = l.Take(ctx, closed.Limit(nil)) },
			[]event{{"wide", runtime.VerdictUnavailable, runtime.SourceFailure, 1, 0}}},
		{"nothing is decided", false, func(ctx context.Context, l *runtime.Limiter) {
			ended, end := context.WithCancel(ctx)
			end()
			_, _ = l.Take(ended, wide.Limit(nil))
			_, _ = l.Take(ctx, wide.Limit(nil).WithCost(-1))
			_, _ = l.Take(ctx, wide.Limit(nil).WithCost(0))
			_, _ = l.Peek(ctx, wide.Limit(nil), hidden.Limit(nil).WithCost(2))
			_ = l.Refund(ctx, runtime.Decision{})
			_ = l.Reset(ctx, wide.Limit(nil))
		}, nil},
		{"after a wait", false, func(ctx context.Context, l *runtime.Limiter) {
			waits := *narrow
			waits.Wait = 2 * time.Hour
			for range 2 {
				_, _ = l.Take(ctx, waits.Limit(nil))
			}
		}, []event{{"narrow", runtime.VerdictAdmitted, runtime.SourceStore, 1, took}, {"narrow", runtime.VerdictAdmitted, runtime.SourceStore, 1, took}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen recorder[event]
				store := newFake()
				store.delay = took
				store.broken.Store(test.broken)
				test.take(context.Background(), runtime.New(store, quiet, observing(runtime.Observer{
					Decision: withContext(func(ev runtime.DecisionEvent) {
						seen.add(event{ev.Rule, ev.Verdict, ev.Source, ev.Cost, ev.Latency})
					}),
				})))
				same(t, "told", test.want, seen.all())
			})
		})
	}
}

// Whatever a number is, its name fits a label.
func TestLabels(t *testing.T) {
	t.Parallel()
	label := regexp.MustCompile(`^[a-z_]+$`)
	for i := range 256 {
		for _, test := range []struct {
			name  fmt.Stringer
			known bool
		}{
			{runtime.Verdict(i), i <= int(runtime.VerdictUnavailable)},
			{runtime.Source(i), i <= int(runtime.SourceProcess)},
			{runtime.ErrorClass(i), i <= int(runtime.ErrorClass(failure.Sharded))},
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
	limiter := inMemory(observing(runtime.Observer{
		Decision: func(_ context.Context, ev runtime.DecisionEvent) { decisions.Add(ev.Rule+"."+ev.Verdict.String(), 1) },
	}))

	search := &runtime.Rule{Name: "search", Prefix: "search:", Window: time.Minute, Max: 2}
	for range 5 {
		_, _ = limiter.Take(context.Background(), search.Limit(runtime.NewKey().AddString("ann")))
	}
	fmt.Println(decisions)
	// Output: {"search.admitted": 2, "search.denied": 3}
}

// A recorder receives every limit of each call under its context, with the
// numbers that callers are told.
func TestRecorder(t *testing.T) {
	t.Parallel()
	type event = runtime.DecisionEvent
	burst := &runtime.Rule{Name: "burst", Window: time.Second, Max: 10, Burst: 2, Algorithm: runtime.TokenBucket}
	daily := &runtime.Rule{Name: "daily", Window: 24 * time.Hour, Max: 5, Algorithm: runtime.FixedWindow}
	tried := &runtime.Rule{Name: "tried", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow}
	synctest.Test(t, func(t *testing.T) {
		limiter := inMemory()
		var got []event
		ctx := runtime.WithRecorder(context.Background(), func(ev event) { got = append(got, ev) })
		for range 3 {
			_, _ = limiter.Take(ctx, burst.Limit(nil), daily.Limit(nil).WithCost(2), tried.Limit(nil))
		}
		const second = time.Second
		want := []event{
			{Rule: "burst", Source: runtime.SourceStore, Algorithm: runtime.TokenBucket, Window: second, Cost: 1, Limit: 2, Max: 10, Remaining: 1, ResetAfter: second / 10},
			{Rule: "daily", Source: runtime.SourceStore, Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Cost: 2, Limit: 5, Max: 5, Remaining: 3, ResetAfter: 24 * time.Hour},
			{Rule: "tried", Source: runtime.SourceStore, Mode: runtime.ModeShadow, Window: time.Hour, Cost: 1, Limit: 1, Max: 1, Remaining: 0, ResetAfter: time.Hour},

			{Rule: "burst", Source: runtime.SourceStore, Algorithm: runtime.TokenBucket, Window: second, Cost: 1, Limit: 2, Max: 10, Remaining: 0, ResetAfter: second / 5},
			{Rule: "daily", Source: runtime.SourceStore, Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Cost: 2, Limit: 5, Max: 5, Remaining: 1, ResetAfter: 24 * time.Hour},
			{Rule: "tried", Verdict: runtime.VerdictShadowDenied, Source: runtime.SourceStore, Mode: runtime.ModeShadow, Window: time.Hour, Cost: 1, Limit: 1, Max: 1, RetryAfter: time.Hour, ResetAfter: time.Hour},

			{Rule: "burst", Verdict: runtime.VerdictDenied, Source: runtime.SourceStore, Algorithm: runtime.TokenBucket, Window: second, Cost: 1, Limit: 2, Max: 10, RetryAfter: second / 10, ResetAfter: second / 5},
			{Rule: "daily", Verdict: runtime.VerdictDenied, Source: runtime.SourceStore, Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Cost: 2, Limit: 5, Max: 5, Remaining: 1, RetryAfter: 24 * time.Hour, ResetAfter: 24 * time.Hour},
			{Rule: "tried", Verdict: runtime.VerdictShadowDenied, Source: runtime.SourceStore, Mode: runtime.ModeShadow, Window: time.Hour, Cost: 1, Limit: 1, Max: 1, RetryAfter: time.Hour, ResetAfter: time.Hour},
		}
		same(t, "recorded", want, got)
	})
}

// A recorder is called for each of several calls, beside one that its context
// had before, and for no call under another context.
func TestRecordersNest(t *testing.T) {
	t.Parallel()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 2}
	limiter := inMemory()
	var outer, inner []string
	add := func(to *[]string) func(runtime.DecisionEvent) {
		return func(ev runtime.DecisionEvent) { *to = append(*to, fmt.Sprint(ev.Verdict, ev.Remaining)) }
	}
	ctx := runtime.WithRecorder(context.Background(), add(&outer))
	if runtime.WithRecorder(ctx, nil) != ctx {
		t.Error("a nil recorder makes another context")
	}
	limiter.TakeEach(runtime.WithRecorder(ctx, add(&inner)), rule.Limit(nil), rule.Limit(nil))
	_, _ = limiter.Take(ctx, rule.Limit(nil))
	_, _ = limiter.Take(context.Background(), rule.Limit(nil))
	_, _ = limiter.Peek(ctx, rule.Limit(nil))
	same(t, "the inner one", []string{"admitted 1", "admitted 0"}, inner)
	same(t, "the outer one", []string{"admitted 1", "admitted 0", "denied 0"}, outer)
}

// Several observers receive the same events, each with the call's context.
func TestObservers(t *testing.T) {
	t.Parallel()
	type name struct{}
	ctx := context.WithValue(context.Background(), name{}, "value")
	var seen [2]recorder[any]
	var wrong atomic.Int64
	opts := []runtime.Option{quiet, runtime.WithObserver(nil)}
	for i := range seen {
		opts = append(opts, observing(runtime.Observer{
			Decision: func(ctx context.Context, ev runtime.DecisionEvent) {
				if seen[i].add(ev); ctx.Value(name{}) != "value" {
					wrong.Add(1)
				}
			},
			Failure: func(ctx context.Context, ev runtime.FailureEvent) {
				if seen[i].add(ev); ctx.Value(name{}) != "value" {
					wrong.Add(1)
				}
			},
		}))
	}
	fast, slow := &runtime.Rule{Name: "fast", Window: time.Hour, Max: 1}, &runtime.Rule{Name: "slow", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow}
	capped := append(opts, runtime.WithProcessCap(&runtime.Rule{Name: "process", Window: time.Hour, Max: 100}))
	for _, limiter := range []*runtime.Limiter{runtime.New(runtime.NewMemoryStore(), opts...), runtime.New(nil, opts...), runtime.New(runtime.NewMemoryStore(), capped...)} {
		_, _ = limiter.Take(ctx, fast.Limit(nil))
		_, _ = limiter.Take(ctx, fast.Limit(nil), slow.Limit(nil))
		_, _ = limiter.Take(ctx, slow.Limit(nil).WithCost(2))
		_, _ = limiter.Take(ctx, fast.Limit(runtime.NewKey().AddInvalid("nil")))
		limiter.TakeEach(ctx, slow.Limit(nil))
	}
	if len(seen[0].all()) == 0 || wrong.Load() != 0 {
		t.Errorf("%d events, %d without the context", len(seen[0].all()), wrong.Load())
	}
	same(t, "the second observer", seen[0].all(), seen[1].all(), cmpopts.EquateComparable(), cmpopts.EquateErrors())
}

// A limit that was not looked up has no source: beside one whose denial is
// remembered, and where the failure policy admits it.
func TestSourceOfEachLimit(t *testing.T) {
	t.Parallel()
	var got []string
	ctx := runtime.WithRecorder(context.Background(), func(ev runtime.DecisionEvent) {
		got = append(got, fmt.Sprint(ev.Rule, " ", ev.Verdict, " ", ev.Source))
	})
	local, open := &runtime.Rule{Name: "local", Window: time.Hour, Max: 5, Fail: runtime.FailLocal}, &runtime.Rule{Name: "open", Window: time.Hour, Max: 5}
	_, _ = runtime.New(new(brokenStore), quiet).Take(ctx, local.Limit(nil), open.Limit(nil))
	recalling := runtime.New(recalls{}, quiet)
	_, _ = recalling.Take(ctx, local.Limit(nil), open.Limit(nil))
	want := []string{"local admitted local", "open admitted failure", "local denied recalled", "open not_charged none"}
	same(t, "recorded", want, got)
}

// recalls is a store that remembers that the first limit of any call is denied.
type recalls struct{ *brokenStore }

func (recalls) Take(_ context.Context, calls []terms.Call) error {
	for _, call := range calls {
		for i := range call.Charges {
			call.Charges[i].Result = terms.Result{Allowed: true}
		}
		call.Charges[0].Result = terms.Result{RetryAfter: time.Hour, Recalled: true}
	}
	return nil
}
