package ratehttp_test

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// What is left is never spread over less time than the policy spreads its quota over,
// for all rules and whatever is left of them.
func TestRatioIsCapped(t *testing.T) {
	for _, algorithm := range []runtime.Algorithm{runtime.SlidingLog, runtime.SlidingCounter, runtime.FixedWindow, runtime.TokenBucket, runtime.LeakyBucket} {
		for _, window := range []time.Duration{time.Second, 7 * time.Second, time.Hour, 366 * 24 * time.Hour} {
			for _, max := range []int64{1, 3, 10, 997} {
				synctest.Test(t, func(t *testing.T) {
					rule := &runtime.Rule{Name: "x", Window: window, Max: max, Algorithm: algorithm}
					if algorithm == runtime.TokenBucket {
						rule.Burst = 2 * max
					}
					h := ratehttp.Middleware()(taking(newLimiter(), rule.Limit(nil)))
					for range 5 {
						checkRatio(t, answerOf(h).Header, rule)
						time.Sleep(window / 10)
					}
				})
			}
		}
	}
}

func checkRatio(t *testing.T, h http.Header, rule *runtime.Rule) {
	t.Helper()
	policies, limits := parse(t, h, "RateLimit-Policy"), parse(t, h, "RateLimit")
	if len(policies) != 1 || len(limits) != 1 {
		t.Fatalf("%v %v", policies, limits)
	}
	q, w := policies[0].Params["q"].(int64), policies[0].Params["w"].(int64)
	r, seconds := limits[0].Params["r"].(int64), limits[0].Params["t"].(int64)
	if r*w > q*seconds || seconds < 1 || r < 0 || r > q {
		t.Errorf("%v %v: q=%d;w=%d and r=%d;t=%d", rule.Algorithm, rule.Window, q, w, r, seconds)
	}
	if q*int64(rule.Window/time.Second) != w*rule.Max {
		t.Errorf("%v: q=%d;w=%d are not %d in %v", rule.Algorithm, q, w, rule.Max, rule.Window)
	}
}

// With jitter clients come back within a span, none of them early, and Retry-After is
// never before the end of the effective window.
func TestWithJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter()
		h := ratehttp.Middleware(ratehttp.WithJitter(9*time.Second + 999*time.Millisecond))(taking(limiter, full.Limit(nil)))
		answerOf(h)
		seen := map[int64]bool{}
		for range 1000 {
			resp := answerOf(h)
			limits := parse(t, resp.Header, "RateLimit")
			after, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 64)
			if err != nil || len(limits) != 1 || limits[0].Params["t"] != after || after < 60 || after > 69 {
				t.Fatalf("Retry-After %s, RateLimit %v", resp.Header.Get("Retry-After"), limits)
			}
			seen[after] = true
		}
		if len(seen) != 10 {
			t.Errorf("%v", seen)
		}
		never := ratehttp.Middleware(ratehttp.WithJitter(time.Hour))(taking(limiter, nobody.Limit(nil)))
		limittest.Equal(t, "a call that can never be admitted may come back after", answerOf(never).Header.Get("Retry-After"), "")
	})
}
