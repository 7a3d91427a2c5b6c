package ratetest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratetest"
)

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
