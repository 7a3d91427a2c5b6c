package ratehttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

const types = "https://iana.org/assignments/http-problem-types#"

// accept sets the header Accept.
func accept(value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Accept", value) }
}

func bodyOf(t testing.TB, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
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

// failing is a store that decides nothing.
type failing struct{ runtime.Store }

var errSecret = errors.New("10.1.2.3:6379: secret")

func (failing) Take(context.Context, []runtime.Call) error { return errSecret }

// A rule that has no room, with a message.
var (
	full    = &runtime.Rule{Name: "shop.Orders.Place", Window: time.Minute, Max: 1, Message: "喝杯茶再来 \"<tea>\""}
	nobody  = &runtime.Rule{Name: "nobody", Window: time.Minute, Max: 0}
	another = &runtime.Rule{Name: "another", Window: time.Hour, Max: 1}
)

// Every refusal has its status, its fields and its document, with a middleware and
// without, and whatever the program has made of the error.
func TestError(t *testing.T) {
	invalid := runtime.NewKey().AddInvalid("nil")
	cases := []struct {
		name    string
		limiter func(...runtime.Option) *runtime.Limiter
		limits  []runtime.Limit
		status  int
		retry   string
		problem map[string]any
	}{
		{"denied", newLimiter, []runtime.Limit{full.Limit(nil)}, 429, "60", map[string]any{
			"type": types + "quota-exceeded", "title": "Quota Exceeded", "status": 429.,
			"detail": full.Message, "violated-policies": []any{"Orders.Place"}}},
		{"denied for ever", newLimiter, []runtime.Limit{nobody.Limit(nil)}, 429, "", map[string]any{
			"type": types + "quota-exceeded", "title": "Quota Exceeded", "status": 429.,
			"detail": runtime.DefaultMessage, "violated-policies": []any{"nobody"}}},
		{"unavailable", func(opts ...runtime.Option) *runtime.Limiter {
			return runtime.New(failing{}, append(opts, runtime.WithLogger(silent), runtime.WithFailurePolicy(runtime.FailClosed))...)
		}, []runtime.Limit{full.Limit(nil)}, 503, "", map[string]any{
			"type": types + "temporary-reduced-capacity", "title": "Temporary Reduced Capacity", "status": 503.,
			"detail": "It cannot be decided now whether the request is within its limits."}},
		{"without a key", func(opts ...runtime.Option) *runtime.Limiter {
			return newLimiter(append(opts, runtime.WithFailurePolicy(runtime.FailClosed))...)
		}, []runtime.Limit{full.Limit(invalid)}, 503, "", map[string]any{
			"type": types + "temporary-reduced-capacity", "title": "Temporary Reduced Capacity", "status": 503.,
			"detail": "It cannot be decided now whether the request is within its limits."}},
		{"a negative cost", newLimiter, []runtime.Limit{full.Limit(nil).WithCost(-1)}, 500, "", map[string]any{
			"type": "about:blank", "title": "Internal Server Error", "status": 500.,
			"detail": "The limits of the request are invalid."}},
	}
	hide := runtime.WithDenied(func(context.Context, error) error { return errors.New("domain error") })
	wrap := runtime.WithDenied(func(_ context.Context, err error) error { return fmt.Errorf("domain: %w", err) })
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
					if c.name == "denied" {
						resp = answerOf(h)
					}
					if resp.StatusCode != c.status || resp.Header.Get("Retry-After") != c.retry || resp.Header.Get("Cache-Control") != "no-store" {
						t.Errorf("%d %v", resp.StatusCode, resp.Header)
					}
					if diff := cmp.Diff(c.problem, problemOf(t, resp)); diff != "" {
						t.Errorf("problem (-want +got):\n%s", diff)
					}
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

// An error that is no refusal is left to the program, also after a refusal that the
// program has dealt with itself.
func TestErrorIsNoRefusal(t *testing.T) {
	limiter := newLimiter(runtime.WithDenied(func(context.Context, error) error { return errors.New("domain error") }))
	h := ratehttp.Middleware()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = limiter.Take(r.Context(), nobody.Limit(nil))
		for _, err := range []error{nil, errors.New("domain error"), context.Canceled, context.DeadlineExceeded, io.EOF} {
			if ratehttp.Error(w, r, err) {
				t.Errorf("%v is a refusal", err)
			}
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	if resp := answerOf(h); resp.StatusCode != http.StatusTeapot || resp.Header.Get("Cache-Control") != "" {
		t.Error(resp.StatusCode, resp.Header)
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

// A client gets the form that it accepts.
func TestAccept(t *testing.T) {
	const document, text = "application/problem+json", "text/plain; charset=utf-8"
	h := ratehttp.Limit{Limiter: newLimiter(), Rule: nobody}.Wrap(http.NotFoundHandler())
	for value, want := range map[string]string{
		"":                             document,
		"*/*":                          document,
		"application/json":             document,
		"application/problem+json":     document,
		"application/json, text/plain": document,
		"text/plain":                   text,
		"TEXT/Plain; charset=utf-8":    text,
		"text/*":                       text,
		"text/plain, */*;q=0.1":        text,
		"text/plain;q=0.1, */*":        document,
		"text/plain;q=0, */*;q=0.5":    document,
		"text/plain; Q=0.9, application/json;q=0.2":                       text,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": text,
		"image/png":                       document,
		",;q=,;;=":                        document,
		"text/plain;q=nan":                document,
		"text/plain;q=-1":                 document,
		"text/plain;q=0.5,text/plain;q=0": text,
		strings.Repeat("a/b,", 1000):      document,
	} {
		resp := answerOf(h, accept(value))
		if got := resp.Header.Get("Content-Type"); got != want {
			t.Errorf("%q gets %q, not %q", value, got, want)
		}
	}
	rule := &runtime.Rule{Name: "x", Window: time.Minute, Message: "tea \xff\n"}
	resp := answerOf(ratehttp.Limit{Limiter: newLimiter(), Rule: rule}.Wrap(http.NotFoundHandler()), accept("text/plain"))
	if body := bodyOf(t, resp); body != "tea \uFFFD\n\n" {
		t.Errorf("%q", body)
	}
}

// A program may write its own body. The field and what they are about stay.
func TestWithAnswer(t *testing.T) {
	var got ratehttp.Answer
	h := ratehttp.Middleware(ratehttp.WithAnswer(func(w http.ResponseWriter, _ *http.Request, a ratehttp.Answer) {
		got = a
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("tea"))
	}))(taking(newLimiter(), full.Limit(nil), another.Limit(nil)))
	answerOf(h)
	resp := answerOf(h)
	if resp.StatusCode != http.StatusTeapot || bodyOf(t, resp) != "tea" || resp.Header.Get("Retry-After") != "3600" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Error(resp.StatusCode, resp.Header)
	}
	if !errors.Is(got.Err, runtime.ErrLimited) || got.Status != 429 || got.RetryAfter != 3600 || got.Detail != runtime.DefaultMessage {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{"Orders.Place", "another"}, got.Policies); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
}

// What a handler writes before or after a refusal does not break the answer.
func TestHandlerThatGoesOn(t *testing.T) {
	limiter := newLimiter()
	refuse := func(w http.ResponseWriter, r *http.Request) {
		_, err := limiter.Take(r.Context(), nobody.Limit(nil))
		if !ratehttp.Error(w, r, err) {
			t.Error("no refusal")
		}
	}
	goesOn := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", "3")
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("Cache-Control", "public, max-age=3600")
		w.Header().Set("Retry-After", "1")
		refuse(w, r)
		refuse(w, r)
		w.WriteHeader(http.StatusOK)
		if _, err := w.Write([]byte("secret")); err == nil {
			t.Error("a handler may write after the answer")
		}
		_, _ = io.WriteString(w, "secret")
		_, _ = io.Copy(w, bytes.NewReader([]byte("secret")))
		_ = http.NewResponseController(w).Flush()
	})
	late := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("begun"))
		refuse(w, r)
	})
	for name, around := range map[string]func(http.Handler) http.Handler{
		"alone": func(h http.Handler) http.Handler { return h }, "middleware": ratehttp.Middleware(),
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(around(goesOn))
			defer server.Close()
			resp, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if doc := problemOf(t, resp); resp.StatusCode != 429 || doc["status"] != 429. {
				t.Error(resp.StatusCode, doc)
			}
			for _, field := range []string{"Content-Encoding", "ETag", "Retry-After"} {
				if got := resp.Header.Get(field); got != "" {
					t.Errorf("%s: %s", field, got)
				}
			}
			if got := resp.Header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control: %s", got)
			}
		})
	}
	resp := answerOf(ratehttp.Middleware()(late))
	if body := bodyOf(t, resp); resp.StatusCode != 200 || body != "begun" {
		t.Error(resp.StatusCode, body)
	}
}
