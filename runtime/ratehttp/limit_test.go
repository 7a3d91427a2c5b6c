package ratehttp_test

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// status answers with the status in the request's query.
var status = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	code, err := strconv.Atoi(r.URL.Query().Get("status"))
	switch {
	case err != nil:
	case code == 0:
		panic(http.ErrAbortHandler)
	default:
		w.WriteHeader(code)
	}
})

// from sets the peer of a request, and what it asks for.
func from(peer, query string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr, r.URL.RawQuery = peer, query }
}

// statuses has a handler answer requests one after the other. A panic is 0.
func statuses(h http.Handler, changes ...func(*http.Request)) (codes []int) {
	for _, change := range changes {
		func() {
			code := 0
			defer func() {
				_ = recover()
				codes = append(codes, code)
			}()
			code = answerOf(h, change).StatusCode
		}()
	}
	return codes
}

func checkStatuses(t *testing.T, got []int, want ...int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

// Without a key each client address has a limit of its own, and a refused request
// does not reach the handler.
func TestLimit(t *testing.T) {
	calls := 0
	h := ratehttp.RequestLimit{Limiter: newLimiter(), Rule: &runtime.Rule{Name: "x", Window: time.Minute, Max: 2}}.Wrap(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	one, other := from("203.0.113.7:1", ""), from("203.0.113.8:1", "")
	checkStatuses(t, statuses(h, one, one, one, other, one), 200, 200, 429, 200, 429)
	if calls != 3 {
		t.Errorf("the handler was called %d times", calls)
	}
	resp := answerOf(h, one)
	if len(parse(t, resp.Header, "RateLimit")) != 1 || problemOf(t, resp)["status"] != 429. {
		t.Error(resp.Header)
	}
}

func TestLimitKeyCostSkip(t *testing.T) {
	h := ratehttp.Middleware(ratehttp.WithLogger(silent))(ratehttp.RequestLimit{
		Limiter: newLimiter(),
		Rule:    &runtime.Rule{Name: "x", Window: time.Minute, Max: 10},
		Key:     func(r *http.Request) string { return r.URL.Query().Get("user") },
		Cost: func(r *http.Request) int64 {
			cost, _ := strconv.ParseInt(r.URL.Query().Get("cost"), 10, 64)
			return cost
		},
		Skip: func(r *http.Request) bool { return r.URL.Path == "/" && r.URL.Query().Get("user") == "admin" },
	}.Wrap(status))
	get := func(query string) func(*http.Request) { return from("203.0.113.7:1", query) }
	checkStatuses(t, statuses(h, get("user=a&cost=6"), get("user=a&cost=6"), get("user=a&cost=4"), get("user=a&cost=1"), get("user=b&cost=10")),
		200, 429, 200, 429, 200)
	checkStatuses(t, statuses(h, get("user=admin&cost=6"), get("user=admin&cost=6"), get("user=a&cost=0"), get("user=c&cost=11"), get("user=c&cost=-1")),
		200, 200, 200, 429, 500)
	checkStatuses(t, statuses(h, get("cost=10"), get("cost=1"), get("user=&cost=1")), 200, 429, 429)
}

// A refund by status gives the charge back, whatever writer is between the limit and
// the server, and also when the handler panics.
func TestLimitRefund(t *testing.T) {
	limits := map[string]func(ratehttp.RequestLimit, http.Handler) http.Handler{
		"alone":      func(l ratehttp.RequestLimit, h http.Handler) http.Handler { return l.Wrap(h) },
		"middleware": func(l ratehttp.RequestLimit, h http.Handler) http.Handler { return ratehttp.Middleware()(l.Wrap(h)) },
		"buffer": func(l ratehttp.RequestLimit, h http.Handler) http.Handler {
			return http.TimeoutHandler(l.Wrap(h), time.Hour, "")
		},
		"buffer below": func(l ratehttp.RequestLimit, h http.Handler) http.Handler {
			return l.Wrap(http.TimeoutHandler(h, time.Hour, ""))
		},
		"buffer, both": func(l ratehttp.RequestLimit, h http.Handler) http.Handler {
			return ratehttp.Middleware()(http.TimeoutHandler(l.Wrap(h), time.Hour, ""))
		},
	}
	for name, wrap := range limits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// Only failed log-ins count.
				h := wrap(ratehttp.RequestLimit{
					Limiter: newLimiter(), Rule: &runtime.Rule{Name: "x", Window: time.Minute, Max: 2},
					Refund: func(status int) bool { return status != 401 && status != 500 },
				}, status)
				get := func(status string) func(*http.Request) { return from("203.0.113.7:1", status) }
				ok, bad := get("status=200"), get("status=401")
				checkStatuses(t, statuses(h, ok, ok, ok, bad, ok, get(""), get("status=404"), get("status=0"), ok), 200, 200, 200, 401, 200, 200, 404, 0, 429)
			})
		})
	}
}

// A permit comes back when the handler returns or panics, and not before.
func TestLimitInFlight(t *testing.T) {
	var h http.Handler
	inner := 0
	limit := ratehttp.RequestLimit{Limiter: newLimiter(), Rule: &runtime.Rule{Name: "x", Window: time.Minute, Max: 1, Algorithm: runtime.Concurrency}}
	h = limit.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner = answerOf(h, from(r.RemoteAddr, "")).StatusCode
		status(w, r)
	}))
	peer := "203.0.113.7:1"
	for range 3 {
		checkStatuses(t, statuses(h, from(peer, "status=201"), from(peer, "status=0"), from(peer, "status=500")), 201, 0, 500)
		if inner != http.StatusTooManyRequests {
			t.Fatalf("a request within a request: %d", inner)
		}
	}
	limit.Refund = func(status int) bool { panic("no") }
	h = limit.Wrap(status)
	checkStatuses(t, statuses(h, from(peer, "status=201"), from(peer, "status=201")), 0, 0)
	limit.Refund = nil
	checkStatuses(t, statuses(limit.Wrap(status), from(peer, "status=201")), 201)
}
