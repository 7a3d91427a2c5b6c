package ratetest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratetest"
)

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
				inBubble = run(t, steps, rule, runtime.New(runtime.NewMemoryStore(), limittest.Quiet), time.Sleep)
			})
			l := ratetest.New(t, limittest.Quiet)
			begin := l.Now()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(begin))
				outside = run(t, steps, rule, runtime.New(runtime.NewMemoryStore(), limittest.Quiet), time.Sleep)
			})
			synctest.Test(t, func(t *testing.T) {
				l := ratetest.New(t, limittest.Quiet)
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
		limit := rule.Limit(limittest.Key(s.key)).WithCost(s.cost)
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

// A decision of another limiter, and so by another clock, is not settled.
func TestOtherLimiter(t *testing.T) {
	reports := &runtime.Rule{Name: "reports", Window: time.Minute, Max: 10}
	d, err := runtime.New(runtime.NewMemoryStore()).Take(t.Context(), reports.Limit(nil))
	limittest.OK(t, err)
	if err := ratetest.New(t).Refund(t.Context(), d); !errors.Is(err, runtime.ErrOtherLimiter) {
		t.Errorf("got %v", err)
	}
}

// Calls of many goroutines are all written down, in a bubble and outside of one.
func TestConcurrentCalls(t *testing.T) {
	test := func(t *testing.T) {
		many, each := &runtime.Rule{Name: "many", Window: time.Hour, Max: 300}, &runtime.Rule{Name: "each", Window: time.Hour, Max: 10}
		l := ratetest.New(t)
		limittest.Concurrently(40, func(i int) {
			for range 10 {
				_, _ = l.Take(t.Context(), many.Limit(nil), each.Limit(limittest.Key(fmt.Sprint(i))))
			}
		})
		l.Check("many").Admitted(300).Refused(100).Cost(300)
	}
	test(t)
	synctest.Test(t, test)
}

// TestOuterTest makes a limiter in a bubble with the t of the test around it, whose
// cleanups run outside of the bubble. It holds a permit, so that it has a timer.
func TestOuterTest(t *testing.T) {
	outer := &fake{TB: t}
	synctest.Test(t, func(t *testing.T) {
		rule := &runtime.Rule{Name: "permits", Window: time.Minute, Max: 1, Algorithm: runtime.Concurrency}
		if _, err := ratetest.New(outer).Take(t.Context(), rule.Limit(nil)); err != nil {
			t.Error(err)
		}
	})
	for _, c := range outer.cleanups {
		c()
	}
	if len(outer.failures) != 1 || !strings.Contains(outer.failures[0], "with the t of a test outside") {
		t.Errorf("failures: %q", outer.failures)
	}
}
