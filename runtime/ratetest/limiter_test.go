package ratetest_test

import (
	stdcontext "context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratetest"
	"github.com/rategen/rategen/runtime/rule"
)

// context returns a context for calls of a test, which may be a fake.
func context(testing.TB) stdcontext.Context { return stdcontext.Background() }

// The limiter decides as a MemoryStore does at the same times, in all fields: outside
// of a bubble, with its own clock, and in one.
func TestDecidesAsMemoryStore(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			algorithm := runtime.Algorithm(seed % uint64(runtime.Concurrency))
			rule := &runtime.Rule{
				Name: "r", Algorithm: algorithm,
				Window: time.Duration(1+random.IntN(5000)) * time.Millisecond, Max: 1 + random.Int64N(20),
			}
			if random.IntN(3) == 0 {
				rule.Block = time.Second
			}
			var steps []step
			for range 200 {
				steps = append(steps, step{
					advance: time.Duration(random.Int64N(int64(rule.Window / 4))).Round(time.Microsecond),
					key:     string(rune('a' + random.IntN(2))), cost: 1 + random.Int64N(3),
					settled: random.Int64N(6) - 2, reset: random.IntN(50) == 0,
				})
			}
			// Windows and buckets begin at round times, so the times must be the same.
			var inBubble, outside []runtime.Decision
			synctest.Test(t, func(t *testing.T) {
				inBubble = run(t, steps, rule, runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(quiet)), time.Sleep)
			})
			l := ratetest.New(t, runtime.WithLogger(quiet))
			begin := l.Now()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(begin))
				outside = run(t, steps, rule, runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(quiet)), time.Sleep)
			})
			synctest.Test(t, func(t *testing.T) {
				l := ratetest.New(t, runtime.WithLogger(quiet))
				compare(t, "in a bubble", inBubble, run(t, steps, rule, l.Limiter, l.Advance))
			})
			compare(t, "outside of a bubble", outside, run(t, steps, rule, l.Limiter, l.Advance))
		})
	}
}

// A step is a call, some time after the one before.
type step struct {
	advance time.Duration
	key     string
	cost    int64
	settled int64 // below 0: not at all
	reset   bool  // the key instead
}

func run(t *testing.T, steps []step, rule *runtime.Rule, l *runtime.Limiter, advance func(time.Duration)) (got []runtime.Decision) {
	for _, s := range steps {
		advance(s.advance)
		limit := rule.Limit(key(s.key)).WithCost(s.cost)
		if s.reset {
			limittest.OK(t, l.Reset(t.Context(), limit))
			continue
		}
		d, _ := l.Take(t.Context(), limit)
		if s.settled >= 0 {
			limittest.OK(t, l.Settle(t.Context(), d, s.settled))
		}
		got = append(got, d)
	}
	return got
}

func compare(t *testing.T, where string, want, got []runtime.Decision) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(runtime.Decision{})); diff != "" {
		t.Errorf("%s (-MemoryStore +ratetest):\n%s", where, diff)
	}
}

// Calls that wait take no real time in a bubble, and are decided as in production.
func TestWaitInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := &runtime.Rule{Name: "queue", Window: time.Hour, Max: 6, Algorithm: runtime.LeakyBucket, Burst: 3, Wait: time.Hour}
		l := ratetest.New(t)
		begin := time.Now()
		for i := range 4 {
			if _, err := take(t, l, queue.Limit(nil)); err != nil {
				t.Fatal(err)
			}
			if got, want := time.Since(begin), time.Duration(i)*10*time.Minute; got != want {
				t.Errorf("call %d came at %v, want %v", i, got, want)
			}
		}
		l.Check("queue").Admitted(4).Refused(0)

		permit := &runtime.Rule{Name: "permit", Window: time.Minute, Max: 1, Algorithm: runtime.Concurrency, Wait: time.Hour}
		d, err := take(t, l, permit.Limit(nil))
		limittest.OK(t, err)
		var waited time.Duration
		go func() {
			begin := time.Now()
			d, err := take(t, l, permit.Limit(nil))
			if err != nil {
				t.Error(err)
			}
			waited = time.Since(begin)
			_ = l.Settle(t.Context(), d)
		}()
		l.Advance(30 * time.Minute) // 30 windows: the permit is renewed
		if waited != 0 {
			t.Errorf("the call waited %v only", waited)
		}
		_ = l.Settle(t.Context(), d)
		l.Advance(0)
		if waited != 30*time.Minute {
			t.Errorf("the call waited %v", waited)
		}
		l.Check("permit").Admitted(2).Cost(0)
	})
}

// Outside of a bubble every kind of call that waits fails the test, and goes on
// without its wait. Calls that need not wait, or may not, do not fail it.
func TestWaitOutsideBubble(t *testing.T) {
	const remedy = "no time passes outside of a bubble: make the limiter in synctest.Test"
	queue := &runtime.Rule{Name: "queue", Window: time.Hour, Max: 6, Algorithm: runtime.LeakyBucket, Wait: 15 * time.Minute}
	full := &runtime.Rule{Name: "full", Window: time.Hour, Max: 6, Algorithm: runtime.LeakyBucket, Wait: time.Hour, Burst: 1}
	log := &runtime.Rule{Name: "log", Window: time.Hour, Max: 1, Wait: 2 * time.Hour}
	impatient := &runtime.Rule{Name: "impatient", Window: time.Hour, Max: 1, Wait: time.Minute}
	permit := &runtime.Rule{Name: "permit", Window: time.Hour, Max: 1, Wait: time.Hour, Algorithm: runtime.Concurrency}
	local := &runtime.Rule{Name: "local", Window: time.Hour, Max: 6, Algorithm: runtime.LeakyBucket, Wait: 15 * time.Minute, Fail: runtime.FailLocal}
	shadow := &runtime.Rule{Name: "shadow", Window: time.Hour, Max: 1, Wait: 2 * time.Hour, Mode: runtime.ModeShadow}
	for _, c := range []struct {
		rule  *runtime.Rule
		gone  bool
		admit int
		want  []string
	}{
		{rule: queue, admit: 2, want: []string{`rule "queue" has a call wait for up to 10m0s, and ` + remedy}},
		{rule: log, admit: 1, want: []string{`rule "log" has a call wait for up to 1h0m0s, and ` + remedy}},
		{rule: permit, admit: 1, want: []string{`rule "permit" has a call wait … and ` + remedy}},
		{rule: local, gone: true, admit: 1, want: []string{`rule "local" has a call wait for 10m0s, and ` + remedy}},
		{rule: impatient, admit: 1},
		{rule: full, admit: 1},
		{rule: shadow, admit: 2},
	} {
		t.Run(c.rule.Name, func(t *testing.T) {
			begin := time.Now()
			got := failuresOf(func(t testing.TB) {
				l := ratetest.New(t)
				if c.gone {
					l.Always(c.rule.Name, ratetest.Unavailable())
				}
				admitted := 0
				for range 2 {
					if _, err := take(t, l, c.rule.Limit(nil)); err == nil {
						admitted++
					}
				}
				if admitted != c.admit {
					t.Errorf("%d were admitted, want %d", admitted, c.admit)
				}
			})
			wantFailures(t, got, c.want...)
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A permit lasts while its call runs, and no longer, however far the clock moves.
func TestPermitsAndAdvance(t *testing.T) {
	both(t, "permits", func(t *testing.T) {
		l := ratetest.New(t)
		d, err := take(t, l, jobs.Limit(nil))
		limittest.OK(t, err)
		for _, by := range []time.Duration{0, time.Millisecond, time.Second, 100 * time.Second} {
			l.Advance(by)
			if _, err := take(t, l, jobs.Limit(nil)); !errors.Is(err, runtime.ErrLimited) {
				t.Errorf("after %v: %v", by, err)
			}
		}
		limittest.OK(t, l.Settle(t.Context(), d))
		if _, err := take(t, l, jobs.Limit(nil)); err != nil {
			t.Error(err)
		}
		// A permit that was reset is gone, and does not come back.
		limittest.OK(t, l.Reset(t.Context(), jobs.Limit(nil)))
		l.Advance(time.Hour)
		if _, err := take(t, l, jobs.Limit(nil)); err != nil {
			t.Error(err)
		}
	})
}

// What the process decides alone goes by the same clock.
func TestLocalCountsAndAdvance(t *testing.T) {
	both(t, "local", func(t *testing.T) {
		all := &runtime.Rule{Name: "all", Window: time.Hour, Max: 3}
		l := ratetest.New(t, runtime.WithProcessCap(all))
		l.Always("lonely", ratetest.Unavailable())
		for i, want := range []bool{true, true, false} {
			if _, err := take(t, l, lonely.Limit(nil)); err == nil != want {
				t.Errorf("call %d: %v", i, err)
			}
		}
		l.Advance(time.Minute)
		if _, err := take(t, l, lonely.Limit(nil)); err != nil {
			t.Error(err)
		}
		if d, err := take(t, l, lonely.Limit(nil)); err == nil || d.Source != rule.SourceProcess {
			t.Errorf("beyond the cap: %+v, %v", d, err)
		}
		l.Advance(time.Hour)
		if d, err := take(t, l, lonely.Limit(nil)); err != nil || d.Source != rule.SourceLocal {
			t.Errorf("%+v, %v", d, err)
		}
		l.Check("lonely").Admitted(4).Refused(1)
		l.Check("all").Refused(1)
	})
}

// A decision of another limiter, and so by another clock, is not settled.
func TestOtherLimiter(t *testing.T) {
	d, err := runtime.New(runtime.NewMemoryStore()).Take(context(t), reports.Limit(nil))
	limittest.OK(t, err)
	if err := ratetest.New(t).Refund(context(t), d); !errors.Is(err, runtime.ErrOtherLimiter) {
		t.Errorf("got %v", err)
	}
}

// Calls of many goroutines are all written down.
func TestConcurrentCalls(t *testing.T) {
	both(t, "concurrent", func(t *testing.T) {
		many := &runtime.Rule{Name: "many", Window: time.Hour, Max: 300}
		l := ratetest.New(t)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				for range 10 {
					_, _ = take(t, l, many.Limit(nil), reports.Limit(key(fmt.Sprint(i))))
				}
			})
		}
		wg.Wait()
		l.Check("many").Admitted(300).Refused(100).Cost(300)
	})
}

// An unlimited limiter admits what no other would, and counts nothing.
func TestUnlimited(t *testing.T) {
	l := ratetest.Unlimited()
	none := &runtime.Rule{Name: "none", Window: time.Hour, Fail: runtime.FailClosed}
	invalid := runtime.NewKey().AddInvalid("it is nil")
	for range 3 {
		for _, limit := range []runtime.Limit{none.Limit(nil), none.Limit(nil).WithCost(-1), none.Limit(invalid)} {
			d, err := l.Take(t.Context(), limit)
			if err != nil || !d.Allowed {
				t.Errorf("%+v, %v", d, err)
			}
			if err := l.Settle(t.Context(), d); err != nil {
				t.Error(err)
			}
		}
	}
	if l.Enabled() {
		t.Error("generated code would build keys")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
