package ratetest_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/ratetest"
)

var (
	orders  = &runtime.Rule{Name: "orders", Window: 10 * time.Second, Max: 2}
	reports = &runtime.Rule{Name: "reports", Prefix: "rep:", Window: time.Minute, Max: 10, Algorithm: runtime.TokenBucket}
	trial   = &runtime.Rule{Name: "trial", Window: time.Minute, Max: 1, Mode: runtime.ModeShadow}
	jobs    = &runtime.Rule{Name: "jobs", Window: time.Second, Max: 1, Algorithm: runtime.Concurrency}
	strict  = &runtime.Rule{Name: "strict", Window: time.Minute, Max: 2, Fail: runtime.FailClosed}
	lonely  = &runtime.Rule{Name: "lonely", Window: time.Minute, Max: 2, Fail: runtime.FailLocal}
)

func key(s string) *runtime.Key { return runtime.NewKey().AddString(s) }

// take has a limiter take limits, and returns what a test would print of it.
func take(t testing.TB, l *ratetest.Limiter, limits ...runtime.Limit) (runtime.Decision, error) {
	return l.Take(context(t), limits...)
}

// Each check fails when what has happened differs, and says what has happened. Each
// case is run outside of a bubble and in one.
func TestChecks(t *testing.T) {
	// Three orders of ann and bob, of which one is refused.
	three := func(t testing.TB, l *ratetest.Limiter) {
		for _, name := range []string{"ann", "ann", "ann", "bob"} {
			_, _ = take(t, l, orders.Limit(key(name)))
		}
	}
	cases := []struct {
		name string
		do   func(t testing.TB, l *ratetest.Limiter)
		want []string
	}{
		{name: "all is as expected", do: func(t testing.TB, l *ratetest.Limiter) {
			three(t, l)
			l.Check("orders").Admitted(3).Refused(1).Cost(3).Keys("bob", "ann")
			l.NothingElse()
		}},
		{name: "admitted", do: func(t testing.TB, l *ratetest.Limiter) {
			three(t, l)
			l.Check("orders").Admitted(4)
		}, want: []string{`rule "orders": 3 calls were admitted, want 4 … this has happened: … 0s … orders "ann" … admitted … cost 1, 1 of 2 left … refused … retry after 10s … orders "bob"`}},
		{name: "refused", do: func(t testing.TB, l *ratetest.Limiter) {
			three(t, l)
			l.Check("orders").Refused(0)
		}, want: []string{`1 calls were refused, want 0 … this has happened`}},
		{name: "cost", do: func(t testing.TB, l *ratetest.Limiter) {
			_, _ = take(t, l, reports.Limit(key("ann")).WithCost(4))
			l.Check("reports").Cost(5).Cost(4)
		}, want: []string{`rule "reports": the calls cost 4, want 5`}},
		{name: "cost of a refused call", do: func(t testing.TB, l *ratetest.Limiter) {
			three(t, l)
			l.Check("orders").Cost(4)
		}, want: []string{`the calls cost 3, want 4`}},
		{name: "a key too many", do: func(t testing.TB, l *ratetest.Limiter) {
			three(t, l)
			l.Check("orders").Keys("ann")
		}, want: []string{`the keys are ["ann" "bob"], want ["ann"]`}},
		{name: "a key too few", do: func(t testing.TB, l *ratetest.Limiter) {
			three(t, l)
			l.Check("orders").Keys("ann", "bob", "cid")
		}, want: []string{`the keys are ["ann" "bob"], want ["ann" "bob" "cid"]`}},
		{name: "something else", do: func(t testing.TB, l *ratetest.Limiter) {
			three(t, l)
			_, _ = take(t, l, reports.Limit(key("ann")))
			l.Check("orders").Refused(1)
			l.NothingElse()
		}, want: []string{`calls have met rule "reports" too … reports "ann"`}},
		{name: "nothing expected", do: func(t testing.TB, l *ratetest.Limiter) {
			three(t, l)
			l.Check("orders")
		}, want: []string{`Check("orders") expects nothing: call its Admitted, Refused, Verdict, Cost or Keys`}},
		{name: "nothing expected, and nothing else", do: func(t testing.TB, l *ratetest.Limiter) {
			three(t, l)
			l.Check("orders")
			l.NothingElse()
		}, want: []string{`calls have met rule "orders" too, which was not checked`}},
		{name: "a misspelled rule", do: func(t testing.TB, l *ratetest.Limiter) {
			three(t, l)
			l.Register(reports)
			l.Check("order").Refused(0)
		}, want: []string{`there is no rule "order" … ["orders" "reports"]`}},
		{name: "a rule that nobody has called", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Register(reports)
			l.Check("reports").Admitted(0).Refused(0).Cost(0).Keys()
			l.NothingElse()
		}},
		{name: "no rules at all", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Check("reports")
		}, want: []string{"no rule is registered, and none was met … nothing has happened"}},
		{name: "not charged", do: func(t testing.TB, l *ratetest.Limiter) {
			three(t, l)
			_, _ = take(t, l, orders.Limit(key("ann")), reports.Limit(key("ann")))
			l.Check("orders").Refused(2)
			l.Check("reports").Verdict(observe.VerdictNotCharged, 1).Admitted(0).Cost(0).Verdict(observe.VerdictNotCharged, 2)
		}, want: []string{"1 calls were not_charged, want 2"}},
		{name: "shadow", do: func(t testing.TB, l *ratetest.Limiter) {
			for range 3 {
				_, _ = take(t, l, trial.Limit(nil))
			}
			l.Check("trial").Admitted(1).Refused(0).Verdict(observe.VerdictShadowRefused, 2).Keys("")
		}},
		{name: "refunded", do: func(t testing.TB, l *ratetest.Limiter) {
			limit := reports.Limit(key("ann")).WithCost(4)
			d, _ := take(t, l, limit)
			_ = l.Refund(context(t), d)
			l.Check("reports").Admitted(1).Cost(4)
		}, want: []string{"the calls cost 0, want 4 … settled … cost 0 instead of 4"}},
		{name: "settled in the background", do: func(t testing.TB, l *ratetest.Limiter) {
			limit := reports.Limit(key("ann")).WithCost(4)
			d, _ := take(t, l, limit)
			l.SettleLater(context(t), d, 7)
			l.Check("reports").Cost(7)
		}},
		{name: "permits", do: func(t testing.TB, l *ratetest.Limiter) {
			d, _ := take(t, l, jobs.Limit(nil))
			l.Check("jobs").Cost(1)
			_ = l.Settle(context(t), d)
			l.Check("jobs").Cost(0)
		}},
		{name: "reset and moved", do: func(t testing.TB, l *ratetest.Limiter) {
			three(t, l)
			l.Advance(3 * time.Second)
			_ = l.Reset(context(t), orders.Limit(key("ann")))
			l.Check("orders").Refused(0)
		}, want: []string{`3s … the clock was moved … by 3s … 3s … orders "ann" … reset`}},
		{name: "a long record", do: func(t testing.TB, l *ratetest.Limiter) {
			for range 60 {
				_, _ = take(t, l, orders.Limit(key("ann")))
			}
			l.Check("orders").Refused(0)
		}, want: []string{"58 calls were refused, want 0 … 10 more before"}},
		{name: "a code that nothing has", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Accept("empty_part", "empty_parts")
			three(t, l)
		}, want: []string{`Accept("empty_parts"): no finding has this code`}},
		{name: "a clock that goes back", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Advance(-1)
		}, want: []string{"a clock does not go back"}},
		{name: "a clock that goes too far", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Advance(99 * 365 * 24 * time.Hour)
			l.Advance(math.MaxInt64)
		}, want: []string{"at most 100 years in all, and this one has moved by 867240h0m0s"}},
	}
	for _, c := range cases {
		both(t, c.name, func(t *testing.T) {
			wantFailures(t, failuresOf(func(t testing.TB) { c.do(t, ratetest.New(t)) }), c.want...)
		})
	}
}

// both runs a test outside of a bubble and in one.
func both(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, test)
	t.Run(name+", in a bubble", func(t *testing.T) { synctest.Test(t, test) })
}

// Keys read as in Redis after the prefix, for every algorithm, whatever they hold.
func TestKeys(t *testing.T) {
	long := strings.Repeat("0123456789", 20)
	for algorithm := range runtime.Concurrency + 1 {
		for block := range 2 {
			for _, prefix := range []string{"", "p:", "a%b:"} {
				rule := &runtime.Rule{Name: "a:b%c", Prefix: prefix, Window: time.Minute, Max: 2, Algorithm: algorithm}
				if algorithm != runtime.Concurrency {
					rule.Block = time.Duration(block) * time.Hour
				}
				t.Run(fmt.Sprintf("%v %v %q", algorithm, rule.Block, prefix), func(t *testing.T) {
					l := ratetest.New(t, runtime.WithNamespace("space"))
					l.Accept("empty_part")
					for _, part := range []string{"ann", "", "1%:{}", "%packed", "%zz"} {
						_, _ = take(t, l, rule.Limit(key(part).AddInt(7)))
					}
					_, _ = take(t, l, rule.Limit(nil))
					l.Check("a:b%c").Keys("ann:7", ":7", "1%25%3A%7B%7D:7", "%25packed:7", "%25zz:7", "")
				})
			}
		}
	}
	t.Run("hashed", func(t *testing.T) {
		l := ratetest.New(t)
		_, _ = take(t, l, orders.Limit(key(long)))
		l.Check("orders").Keys(fmt.Sprintf("%%sha256-%x", sha256.Sum256([]byte(long))))
	})
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
	wantFailures(t, outer.failures, "with the t of a test outside")
}
