package runtime_test

import (
	"context"
	"expvar"
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A slow store takes its time.
type slow struct {
	runtime.Store
	takes time.Duration
}

func (s *slow) Take(ctx context.Context, calls []terms.Call) error {
	time.Sleep(s.takes)
	return s.Store.Take(ctx, calls)
}

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
			_ = l.Refund(ctx, runtime.Decision{}, wide.Limit(nil))
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
				var told recorder[event]
				var store runtime.Store = &slow{runtime.NewMemoryStore(), took}
				if test.broken {
					store = &brokenStore{}
				}
				test.take(context.Background(), runtime.New(store, quiet, observing(runtime.Observer{
					Decision: withContext(func(ev runtime.DecisionEvent) {
						told.add(event{ev.Rule, ev.Verdict, ev.Source, ev.Cost, ev.Latency})
					}),
				})))
				if diff := cmp.Diff(test.want, told.all()); diff != "" {
					t.Errorf("told (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The breaker is told of once when it opens and once when it closes.
func TestObserverBreaker(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	told := make(chan runtime.BreakerEvent, 100)
	var failures recorder[runtime.FailureEvent]
	limiter := runtime.New(runtime.NewRedisStore(server.Client(t, func(o *redis.Options) { o.DialerRetries = 1 })), quiet,
		observing(runtime.Observer{Breaker: func(ev runtime.BreakerEvent) { told <- ev }, Failure: withContext(failures.add)}))
	until := func(open bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; {
			_, _ = limiter.Take(context.Background(), wide.Limit(nil))
			select {
			case ev := <-told:
				if ev.Open != open {
					t.Fatalf("told %+v, want open %t", ev, open)
				}
				return
			default:
			}
			if time.Now().After(deadline) {
				t.Fatalf("nothing is told, want open %t", open)
			}
			time.Sleep(time.Millisecond)
		}
	}
	server.Kill()
	until(true)
	_, _ = limiter.Take(context.Background(), wide.Limit(nil))
	server.Restart()
	until(false)
	classes := map[runtime.ErrorClass]bool{}
	for _, ev := range failures.all() {
		classes[ev.Class] = true
		if ev.Rule != "wide" || ev.Policy != runtime.FailOpen {
			t.Fatalf("told %+v", ev)
		}
	}
	if !classes[runtime.ClassBreakerOpen] || len(classes) < 2 {
		t.Errorf("told of the classes %v", classes)
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
			{runtime.ErrorClass(i), i <= int(runtime.ClassSharded)},
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
