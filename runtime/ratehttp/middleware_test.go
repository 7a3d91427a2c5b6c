package ratehttp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
	"github.com/rategen/rategen/runtime/rule"
)

// answerOf has a handler answer one GET of one client.
func answerOf(h http.Handler, change ...func(*http.Request)) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// taking is a handler that charges limits and answers refusals.
func taking(limiter *runtime.Limiter, limits ...runtime.Limit) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := limiter.Take(r.Context(), limits...); err != nil {
			ratehttp.Error(w, r, err)
			return
		}
		_, _ = w.Write([]byte("ok"))
	})
}

// The fields show every limit of a call, for each algorithm, when it is admitted and
// when it is not.
func TestFields(t *testing.T) {
	const second, hour, day = time.Second, time.Hour, 24 * time.Hour
	for _, c := range []struct {
		name     string
		rules    []*runtime.Rule
		calls    int
		policies []item
		limits   []item
	}{
		{"a log", []*runtime.Rule{{Name: "p.S.Get", Window: 10 * second, Max: 5}}, 1,
			[]item{{"S.Get", params{"q": int64(5), "w": int64(10)}}},
			[]item{{"S.Get", params{"r": int64(4), "t": int64(8)}}}},
		{"a log that is used up", []*runtime.Rule{{Name: "p.S.Get", Window: 10 * second, Max: 5}}, 5,
			[]item{{"S.Get", params{"q": int64(5), "w": int64(10)}}},
			[]item{{"S.Get", params{"r": int64(0), "t": int64(10)}}}},
		{"a log that refuses", []*runtime.Rule{{Name: "p.S.Get", Window: 10 * second, Max: 5}}, 6,
			[]item{{"S.Get", params{"q": int64(5), "w": int64(10)}}},
			[]item{{"S.Get", params{"r": int64(0), "t": int64(10)}}}},
		{"a window that is no whole second", []*runtime.Rule{{Name: "x", Window: 1500 * time.Millisecond, Max: 3}}, 1,
			[]item{{"x", params{"q": int64(3)}}},
			[]item{{"x", params{"r": int64(2), "t": int64(1)}}}},
		{"a fixed window", []*runtime.Rule{{Name: "x", Window: hour, Max: 10, Algorithm: runtime.FixedWindow}}, 9,
			[]item{{"x", params{"q": int64(10), "w": int64(3600)}}},
			[]item{{"x", params{"r": int64(1), "t": int64(3600)}}}},
		{"a bucket: its burst comes back in ten seconds", []*runtime.Rule{{Name: "x", Window: second, Max: 10, Burst: 100, Algorithm: runtime.TokenBucket}}, 1,
			[]item{{"x", params{"q": int64(100), "w": int64(10)}}},
			[]item{{"x", params{"r": int64(99), "t": int64(10)}}}},
		{"a bucket whose burst comes back in 3.3 s", []*runtime.Rule{{Name: "x", Window: second, Max: 3, Burst: 10, Algorithm: runtime.TokenBucket}}, 1,
			[]item{{"x", params{"q": int64(10)}}},
			[]item{{"x", params{"r": int64(9), "t": int64(3)}}}},
		{"a long window", []*runtime.Rule{{Name: "x", Window: rule.MaxWindow, Max: rule.MaxCount, Algorithm: runtime.SlidingCounter}}, 1,
			[]item{{"x", params{"q": int64(rule.MaxCount), "w": int64(rule.MaxWindow / second)}}},
			[]item{{"x", params{"r": int64(rule.MaxCount - 1), "t": int64(rule.MaxWindow / second)}}}},
		{"two limits", []*runtime.Rule{{Name: "burst", Window: second, Max: 2}, {Name: "daily", Window: day, Max: 864}}, 2,
			[]item{{"burst", params{"q": int64(2), "w": int64(1)}}, {"daily", params{"q": int64(864), "w": int64(86400)}}},
			[]item{{"burst", params{"r": int64(0), "t": int64(1)}}, {"daily", params{"r": int64(862), "t": int64(86200)}}}},
		{"two limits of which one refuses", []*runtime.Rule{{Name: "burst", Window: second, Max: 2}, {Name: "daily", Window: day, Max: 864}}, 3,
			[]item{{"burst", params{"q": int64(2), "w": int64(1)}}, {"daily", params{"q": int64(864), "w": int64(86400)}}},
			[]item{{"burst", params{"r": int64(0), "t": int64(1)}}}},
		{"a limit that is only tried", []*runtime.Rule{{Name: "tried", Window: second, Max: 1, Mode: runtime.ModeShadow}}, 2, nil, nil},
		{"a limit that admits nobody", []*runtime.Rule{{Name: "x", Window: second, Max: 0}}, 1,
			[]item{{"x", params{"q": int64(0), "w": int64(1)}}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var limits []runtime.Limit
				for _, r := range c.rules {
					limits = append(limits, r.Limit(nil))
				}
				h := ratehttp.Middleware()(taking(newLimiter(), limits...))
				var resp *http.Response
				for range c.calls {
					resp = answerOf(h)
				}
				limittest.Same(t, "RateLimit-Policy", c.policies, parse(t, resp.Header, "RateLimit-Policy"))
				limittest.Same(t, "RateLimit", c.limits, parse(t, resp.Header, "RateLimit"))
			})
		})
	}
}
