package runtime_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"regexp"
	"strings"
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
	hidden.Name, hidden.Prefix, hidden.Mode = "hidden", "hidden:", runtime.Shadow
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
			{"wide", runtime.Admitted, runtime.SourceStore, 2, took}, {"narrow", runtime.Admitted, runtime.SourceStore, 1, took},
			{"wide", runtime.NotCharged, runtime.SourceStore, 2, took}, {"narrow", runtime.Denied, runtime.SourceStore, 1, took},
		}},
		{"shadow", false, func(ctx context.Context, l *runtime.Limiter) {
			for range 2 {
				_, _ = l.Take(ctx, wide.Limit(nil), hidden.Limit(nil))
			}
		}, []event{
			{"wide", runtime.Admitted, runtime.SourceStore, 1, took}, {"hidden", runtime.Admitted, runtime.SourceStore, 1, took},
			{"wide", runtime.Admitted, runtime.SourceStore, 1, took}, {"hidden", runtime.ShadowDenied, runtime.SourceStore, 1, took},
		}},
		{"never", false, func(ctx context.Context, l *runtime.Limiter) {
			_, _ = l.Take(ctx, wide.Limit(nil), narrow.Limit(nil).WithCost(2))
			_, _ = l.Take(ctx, hidden.Limit(nil).WithCost(2))
		}, []event{
			{"wide", runtime.NotCharged, runtime.SourceNone, 1, 0}, {"narrow", runtime.Denied, runtime.SourceNone, 2, 0},
			{"hidden", runtime.ShadowDenied, runtime.SourceNone, 2, 0},
		}},
		{"each", false, func(ctx context.Context, l *runtime.Limiter) {
			l.TakeEach(ctx, narrow.Limit(nil), narrow.Limit(nil), wide.Limit(nil))
		}, []event{
			{"narrow", runtime.Admitted, runtime.SourceStore, 1, took}, {"narrow", runtime.Denied, runtime.SourceStore, 1, took},
			{"wide", runtime.Admitted, runtime.SourceStore, 1, took},
		}},
		{"local", true, func(ctx context.Context, l *runtime.Limiter) {
			for range 2 {
				_, _ = l.Take(ctx, local.Limit(nil))
			}
		}, []event{{"narrow", runtime.Admitted, runtime.SourceLocal, 1, 0}, {"narrow", runtime.Denied, runtime.SourceLocal, 1, 0}}},
		{"open", true, func(ctx context.Context, l *runtime.Limiter) { _, _ = l.Take(ctx, wide.Limit(nil)) },
			[]event{{"wide", runtime.Admitted, runtime.SourceFailure, 1, 0}}},
		{"closed", true, func(ctx context.Context, l *runtime.Limiter) { _, _ = l.Take(ctx, closed.Limit(nil)) },
			[]event{{"wide", runtime.Unavailable, runtime.SourceFailure, 1, 0}}},
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
		}, []event{{"narrow", runtime.Admitted, runtime.SourceStore, 1, took}, {"narrow", runtime.Admitted, runtime.SourceStore, 1, took}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told recorder[event]
				var store runtime.Store = &slow{runtime.NewMemoryStore(), took}
				if test.broken {
					store = &brokenStore{}
				}
				test.take(context.Background(), runtime.New(store, quiet, runtime.WithObserver(&runtime.Observer{
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

// A denial that is remembered is told as such.
func TestObserverRecalled(t *testing.T) {
	t.Parallel()
	var told recorder[runtime.DecisionEvent]
	limiter := runtime.New(runtime.NewRedisStore(redistest.Start(t).Client(t), runtime.WithTimeout(10*time.Second), runtime.WithDenialMemory(time.Hour)),
		quiet, runtime.WithObserver(&runtime.Observer{Decision: withContext(told.add)}))
	passing(t, limiter, narrow.Limit(nil), 3)
	var got []string
	for _, ev := range told.all() {
		got = append(got, fmt.Sprint(ev.Verdict, " ", ev.Source))
		if ev.Latency <= 0 {
			t.Errorf("a latency of %v", ev.Latency)
		}
	}
	if diff := cmp.Diff([]string{"admitted store", "denied store", "denied recalled"}, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// The breaker is told of once when it opens and once when it closes.
func TestObserverBreaker(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	told := make(chan runtime.BreakerEvent, 100)
	var failures recorder[runtime.FailureEvent]
	limiter := runtime.New(runtime.NewRedisStore(server.Client(t, func(o *redis.Options) { o.DialerRetries = 1 })), quiet,
		runtime.WithObserver(&runtime.Observer{Breaker: func(ev runtime.BreakerEvent) { told <- ev }, Failure: withContext(failures.add)}))
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

type secretText struct{ text string }

func (s secretText) MarshalText() ([]byte, error) { return nil, errors.New("cannot write " + s.text) }

// Neither an event nor a line of the log holds any part of a key, whatever
// goes wrong with it.
func TestObserverSeesNoKey(t *testing.T) {
	t.Parallel()
	const marker = "Hg7marker"
	ctx := context.Background()
	server := redistest.Start(t)
	direct := server.Client(t)
	direct.Set(ctx, "wrong:"+marker, "x", 0)
	direct.Do(ctx, "ACL", "SETUSER", "other", "on", "nopass", "~other:*", "+@all")
	refused := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "other", "any" })

	var out lines
	var told recorder[any]
	observer := runtime.WithObserver(&runtime.Observer{
		Decision: func(_ context.Context, ev runtime.DecisionEvent) { told.add(ev); panic("no") },
		Failure:  func(_ context.Context, ev runtime.FailureEvent) { told.add(ev) },
		Breaker:  func(ev runtime.BreakerEvent) { told.add(ev) },
		Override: func(ev runtime.OverrideEvent) { told.add(ev) },
		Panic:    func(ev runtime.PanicEvent) { told.add(ev) },
	})
	wrong := &runtime.Rule{Name: "wrong", Prefix: "wrong:", Window: time.Hour, Max: 1}
	for _, store := range map[string]runtime.Store{
		"memory": runtime.NewMemoryStore(), "redis": runtime.NewRedisStore(direct, runtime.WithTimeout(10*time.Second)),
		"refused": runtime.NewRedisStore(refused, runtime.WithTimeout(10*time.Second)), "broken": &brokenStore{}, "none": nil,
	} {
		for _, policy := range []runtime.FailurePolicy{runtime.FailOpen, runtime.FailClosed, runtime.FailLocal} {
			limiter := runtime.New(store, out.logger(), observer, runtime.WithFailurePolicy(policy),
				runtime.WithProcessCap(&runtime.Rule{Name: "process", Window: time.Hour, Max: 9, Algorithm: runtime.FixedWindow}))
			for _, k := range []*runtime.Key{
				key(marker), key(marker + "\x00{}:%"), key(strings.Repeat(marker, 100)),
				runtime.NewKey().AddString(marker).AddInvalid("req is nil"), runtime.NewKey().AddText(secretText{marker}),
			} {
				for _, limit := range []runtime.Limit{narrow.Limit(k), wrong.Limit(k), narrow.Limit(k).WithCost(3), narrow.Limit(k).WithMax(-1)} {
					d, _ := limiter.Take(ctx, limit, wide.Limit(k))
					limiter.TakeEach(ctx, limit, limit)
					_ = limiter.Refund(ctx, d, limit)
					_, _ = limiter.Peek(ctx, limit)
				}
			}
		}
	}
	kinds := map[string]int{}
	for _, ev := range told.all() {
		kinds[fmt.Sprintf("%T", ev)]++
		if text := fmt.Sprintf("%+v", ev); strings.Contains(text, "marker") {
			t.Fatalf("an event names a key: %s", text)
		}
	}
	if kinds["runtime.DecisionEvent"] == 0 || kinds["runtime.FailureEvent"] == 0 || kinds["runtime.PanicEvent"] == 0 {
		t.Errorf("told of %v only", kinds)
	}
	if strings.Contains(out.String(), "marker") {
		t.Errorf("the log names a key:\n%s", out.String())
	}
}

// An observer that panics changes nothing, and is reported.
func TestObserverPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out lines
		var panics recorder[runtime.PanicEvent]
		source := new(board)
		limiter := runtime.New(runtime.NewMemoryStore(), out.logger(), runtime.WithOverrides(source, time.Second),
			runtime.WithEnabled(func() bool { panic("kill switch") }),
			runtime.WithObserver(&runtime.Observer{
				Decision: func(_ context.Context, _ runtime.DecisionEvent) { panic("decision") },
				Failure:  func(_ context.Context, _ runtime.FailureEvent) { panic(fmt.Errorf("failure")) },
				Override: func(runtime.OverrideEvent) { var none *runtime.Rule; _ = none.Name },
				Panic:    func(ev runtime.PanicEvent) { panics.add(ev); panic("panic") },
			}))
		defer limiter.Close()
		source.set(one(runtime.Override{Max: new(int64(2))}), nil)
		time.Sleep(time.Second)
		synctest.Wait()
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 5}
		if got := passing(t, limiter, rule.Limit(nil), 5); got != 2 {
			t.Errorf("%d admitted, want 2", got)
		}
		if _, err := limiter.Take(context.Background(), rule.Limit(runtime.NewKey().AddInvalid("nil"))); err != nil {
			t.Error(err)
		}
		in := map[string]int{}
		for _, ev := range panics.all() {
			in[ev.In]++
		}
		if diff := cmp.Diff(map[string]int{"observer": 1 + 5 + 1, "kill switch": 6}, in); diff != "" {
			t.Errorf("panics (-want +got):\n%s", diff)
		}
		if n := strings.Count(out.String(), "panic in a function that the rate limiter was given"); n != 2 || !strings.Contains(out.String(), "goroutine ") {
			t.Errorf("%d lines, want one of each kind, with a stack:\n%s", n, out.String())
		}
	})
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
			{runtime.Verdict(i), i <= int(runtime.Unavailable)},
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

// Without an observer nothing is measured and nothing allocated, and with one
// nothing is allocated either.
func TestObserverAllocates(t *testing.T) {
	decisions := 0
	for name, observer := range map[string]*runtime.Observer{
		"none": nil, "empty": {}, "full": {Decision: func(_ context.Context, _ runtime.DecisionEvent) { decisions++ }},
	} {
		limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithObserver(observer))
		limit := wide.Limit(nil)
		if n := fewestAllocs(func() { _, _ = limiter.Take(context.Background(), limit) }); n != 0 {
			t.Errorf("%s: %v allocations a call", name, n)
		}
	}
	if decisions == 0 {
		t.Error("the observer is not told")
	}
}

// BenchmarkObserver compares decisions with and without an observer, and with
// overrides to look up.
func BenchmarkObserver(b *testing.B) {
	source := new(board)
	source.set(runtime.Overrides{Rules: map[string]runtime.Override{"wide": {Max: new(int64(1_000_000_000))}}}, nil)
	count := 0
	for _, bench := range []struct {
		name string
		opts []runtime.Option
	}{
		{"none", nil},
		{"empty observer", []runtime.Option{runtime.WithObserver(new(runtime.Observer))}},
		{"observer", []runtime.Option{runtime.WithObserver(&runtime.Observer{Decision: func(_ context.Context, _ runtime.DecisionEvent) { count++ }})}},
		{"overrides", []runtime.Option{runtime.WithOverrides(source, time.Hour)}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			limiter := runtime.New(runtime.NewMemoryStore(), append(bench.opts, quiet)...)
			defer limiter.Close()
			limit := wide.Limit(nil)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = limiter.Take(context.Background(), limit)
			}
		})
	}
}

// Decisions by rule and verdict, for a program's /debug/vars.
func ExampleObserver() {
	decisions := new(expvar.Map) // expvar.NewMap("rate_limit_decisions") in a program
	limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithObserver(&runtime.Observer{
		Decision: func(_ context.Context, ev runtime.DecisionEvent) { decisions.Add(ev.Rule+"."+ev.Verdict.String(), 1) },
	}))

	search := &runtime.Rule{Name: "search", Prefix: "search:", Window: time.Minute, Max: 2}
	for range 5 {
		_, _ = limiter.Take(context.Background(), search.Limit(runtime.NewKey().AddString("ann")))
	}
	fmt.Println(decisions)
	// Output: {"search.admitted": 2, "search.denied": 3}
}
