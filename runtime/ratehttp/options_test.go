package ratehttp_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime/ratehttp"
)

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
