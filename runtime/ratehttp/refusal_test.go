package ratehttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/ratehttp"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

const types = "https://iana.org/assignments/http-problem-types#"

// accept sets the header Accept.
func accept(value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Accept", value) }
}

func bodyOf(t testing.TB, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	limittest.OK(t, err)
	return string(body)
}

// problemOf reads a problem document, and fails the test if it is none.
func problemOf(t testing.TB, resp *http.Response) (doc map[string]any) {
	t.Helper()
	body := bodyOf(t, resp)
	if err := json.Unmarshal([]byte(body), &doc); err != nil || resp.Header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("%s %q: %v", resp.Header.Get("Content-Type"), body, err)
	}
	return doc
}

// failing returns a store that decides nothing.
func failing() runtime.Store { return rawstore.New(mute{}, nil) }

type mute struct{ terms.Store }

var errSecret = errors.New("10.1.2.3:6379: secret")

func (mute) Take(context.Context, []terms.Call) error { return errSecret }

// A rule that has no room, with a message.
var (
	full    = &runtime.Rule{Name: "shop.Orders.Place", Window: time.Minute, Max: 1, Message: "喝杯茶再来 \"<tea>\""}
	nobody  = &runtime.Rule{Name: "nobody", Window: time.Minute, Max: 0}
	another = &runtime.Rule{Name: "another", Window: time.Hour, Max: 1}
)

// Every refusal has its status, its fields and its document, with a middleware and
// without, and whatever the program has made of the error.
func TestError(t *testing.T) {
	cases := []struct {
		name    string
		limiter func(...runtime.Option) *runtime.Limiter
		limits  []runtime.Limit
		status  int
		retry   string
		problem map[string]any
	}{
		{"refused", newLimiter, []runtime.Limit{full.Limit(nil)}, 429, "60", map[string]any{
			"type": types + "quota-exceeded", "title": "Quota Exceeded", "status": 429.,
			"detail": full.Message, "violated-policies": []any{"Orders.Place"}}},
		{"refused for ever", newLimiter, []runtime.Limit{nobody.Limit(nil)}, 429, "", map[string]any{
			"type": types + "quota-exceeded", "title": "Quota Exceeded", "status": 429.,
			"detail": runtime.DefaultMessage, "violated-policies": []any{"nobody"}}},
		{"unavailable", func(opts ...runtime.Option) *runtime.Limiter {
			return runtime.New(failing(), append(opts, runtime.WithLogger(silent), runtime.WithFailurePolicy(runtime.FailClosed))...)
		}, []runtime.Limit{full.Limit(nil)}, 503, "", map[string]any{
			"type": types + "temporary-reduced-capacity", "title": "Temporary Reduced Capacity", "status": 503.,
			"detail": "It cannot be decided now whether the request is within its limits."}},
		{"without a key", newLimiter, []runtime.Limit{(&runtime.Rule{Name: "keyless", Window: time.Minute, Max: 1, Invalid: rule.InvalidRefuse}).Limit(runtime.NewKey().AddInvalid("nil"))}, 500, "", map[string]any{
			"type": "about:blank", "title": "Internal Server Error", "status": 500.,
			"detail": "The limits of the request cannot be applied."}},
		{"a negative cost", newLimiter, []runtime.Limit{full.Limit(nil).WithCost(-1)}, 500, "", map[string]any{
			"type": "about:blank", "title": "Internal Server Error", "status": 500.,
			"detail": "The limits of the request cannot be applied."}},
	}
	hide := runtime.WithRefusalError(func(context.Context, error) error { return errors.New("domain error") })
	wrap := runtime.WithRefusalError(func(_ context.Context, err error) error { return fmt.Errorf("domain: %w", err) })
	for _, c := range cases {
		for _, way := range []string{"alone", "alone, wrapped", "middleware", "middleware, hidden", "middleware, wrapped"} {
			t.Run(c.name+" "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var opts []runtime.Option
					if strings.Contains(way, "hidden") {
						opts = append(opts, hide)
					} else if strings.Contains(way, "wrapped") {
						opts = append(opts, wrap)
					}
					limiter := c.limiter(opts...)
					h := taking(limiter, c.limits...)
					if strings.HasPrefix(way, "middleware") {
						h = ratehttp.Middleware()(h)
					}
					resp := answerOf(h)
					if c.name == "refused" {
						resp = answerOf(h)
					}
					if resp.StatusCode != c.status || resp.Header.Get("Retry-After") != c.retry || resp.Header.Get("Cache-Control") != "no-store" {
						t.Errorf("%d %v", resp.StatusCode, resp.Header)
					}
					limittest.Same(t, "problem", c.problem, problemOf(t, resp))
					limits := parse(t, resp.Header, "RateLimit")
					if want := c.retry != ""; want != (len(limits) == 1) {
						t.Errorf("RateLimit: %v", limits)
					} else if want && limits[0].Params["t"] != int64(60) {
						t.Errorf("Retry-After is %s and RateLimit %v", c.retry, limits)
					}
				})
			})
		}
	}
}

type statusError int

func (e statusError) Error() string   { return "10.1.2.3: secret" }
func (e statusError) StatusCode() int { return int(e) }

// Deny never answers like a success, whatever the error is, and tells clients nothing
// of its text.
func TestDeny(t *testing.T) {
	for err, want := range map[error]int{
		context.Canceled: 503, context.DeadlineExceeded: 503, errSecret: 429,
		statusError(403): 403, statusError(503): 503, statusError(200): 429, statusError(0): 429, statusError(429): 429,
		statusError(599): 599, runtime.ErrUnavailable: 503, runtime.ErrLimited: 429, runtime.ErrInvalidLimit: 500,
	} {
		resp := answerOf(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ratehttp.Deny(w, r, err) }))
		body := bodyOf(t, resp)
		if resp.StatusCode != want || strings.Contains(body, "secret") || resp.Header.Get("Retry-After") != "" {
			t.Errorf("%v: %d %s", err, resp.StatusCode, body)
		}
		if title := problemTitle(t, body); title == "" {
			t.Errorf("%v: the document has no title", err)
		}
	}
	resp := answerOf(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ratehttp.Deny(w, r, nil) }))
	if resp.StatusCode < 400 {
		t.Errorf("no error: %d", resp.StatusCode)
	}
}

func problemTitle(t *testing.T, body string) string {
	t.Helper()
	var doc struct{ Title string }
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Error(err)
	}
	return doc.Title
}
