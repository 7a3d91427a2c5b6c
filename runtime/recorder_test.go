package runtime_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

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
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
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
	if diff := cmp.Diff([]string{"admitted 1", "admitted 0"}, inner); diff != "" {
		t.Errorf("the inner one (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"admitted 1", "admitted 0", "denied 0"}, outer); diff != "" {
		t.Errorf("the outer one (-want +got):\n%s", diff)
	}
}

// Several observers receive the same events, each with the call's context.
func TestObservers(t *testing.T) {
	t.Parallel()
	type name struct{}
	ctx := context.WithValue(context.Background(), name{}, "value")
	var told [2]recorder[any]
	var wrong atomic.Int64
	opts := []runtime.Option{quiet, runtime.WithObserver(nil)}
	for i := range told {
		opts = append(opts, observing(runtime.Observer{
			Decision: func(ctx context.Context, ev runtime.DecisionEvent) {
				if told[i].add(ev); ctx.Value(name{}) != "value" {
					wrong.Add(1)
				}
			},
			Failure: func(ctx context.Context, ev runtime.FailureEvent) {
				if told[i].add(ev); ctx.Value(name{}) != "value" {
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
	if len(told[0].all()) == 0 || wrong.Load() != 0 {
		t.Errorf("%d events, %d without the context", len(told[0].all()), wrong.Load())
	}
	if diff := cmp.Diff(told[0].all(), told[1].all(), cmpopts.EquateComparable(), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("the second observer (-first +second):\n%s", diff)
	}
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
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
