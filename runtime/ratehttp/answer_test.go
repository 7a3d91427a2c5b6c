package ratehttp_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// A text is valid, whatever the message is.
func TestTextOfMessage(t *testing.T) {
	rule := &runtime.Rule{Name: "x", Window: time.Minute, Message: "tea \xff\n"}
	h := ratehttp.RequestLimit{Limiter: newLimiter(), Rule: rule}.Wrap(http.NotFoundHandler())
	resp := answerOf(h, func(r *http.Request) { r.Header.Set("Accept", "text/plain") })
	limittest.Equal(t, "body", bodyOf(t, resp), "tea \uFFFD\n\n")
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
	limittest.Same(t, "policies", []string{"Orders.Place", "another"}, got.Policies)
}

// A function that writes nothing does not turn a refusal into a success.
func TestWithAnswerThatWritesNothing(t *testing.T) {
	h := ratehttp.Middleware(ratehttp.WithAnswer(func(http.ResponseWriter, *http.Request, ratehttp.Answer) {}))(taking(newLimiter(), nobody.Limit(nil)))
	if resp := answerOf(h); resp.StatusCode != 429 || problemOf(t, resp)["status"] != 429. {
		t.Error(resp.StatusCode)
	}
}

// drop writes in each way, to a writer that has answered.
func drop(t *testing.T, w http.ResponseWriter) {
	for name, write := range map[string]func() (int64, error){
		"Write":       func() (int64, error) { n, err := w.Write([]byte("secret")); return int64(n), err },
		"WriteString": func() (int64, error) { n, err := io.WriteString(w, "secret"); return int64(n), err },
		"ReadFrom":    func() (int64, error) { return io.Copy(w, struct{ io.Reader }{strings.NewReader("secret")}) },
		"Flush":       func() (int64, error) { return 6, http.NewResponseController(w).Flush() },
	} {
		if n, err := write(); n != 6 || err != nil {
			t.Errorf("%s: %d %v", name, n, err)
		}
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
	fall := []string{"ETag", "Content-Disposition", "Content-Language", "Accept-Ranges", "Expires", "Digest", "Repr-Digest", "CDN-Cache-Control",
		"Surrogate-Control", "X-Accel-Redirect", "X-Accel-Expires", "X-Sendfile", "Location", "Retry-After"}
	goesOn := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/middleware" { // alone it may be a middleware that encodes
			w.Header().Set("Content-Encoding", "gzip")
		}
		w.Header().Set("Content-Length", "3")
		for _, field := range fall {
			w.Header().Set(field, "public, max-age=3600")
		}
		w.Header().Set("Set-Cookie", "a=b")
		refuse(w, r)
		refuse(w, r)
		w.WriteHeader(http.StatusOK)
		if r.URL.Path == "/middleware" {
			drop(t, w)
			return
		}
		_, _ = io.WriteString(w, "secret")
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
			resp, err := server.Client().Get(server.URL + "/" + name)
			limittest.OK(t, err)
			defer resp.Body.Close()
			if doc := problemOf(t, resp); resp.StatusCode != 429 || doc["status"] != 429. {
				t.Error(resp.StatusCode, doc)
			}
			for _, field := range append(fall, "Content-Encoding") {
				limittest.Equal(t, field, resp.Header.Get(field), "")
			}
			limittest.Equal(t, "Cache-Control and Set-Cookie", resp.Header.Get("Cache-Control")+resp.Header.Get("Set-Cookie"), "no-storea=b")
		})
	}
	resp := answerOf(ratehttp.Middleware()(late))
	if body := bodyOf(t, resp); resp.StatusCode != 200 || body != "begun" {
		t.Error(resp.StatusCode, body)
	}
}

// gzipWriter compresses what is written, as many middlewares do.
type gzipWriter struct {
	http.ResponseWriter
	to *gzip.Writer
}

func (g gzipWriter) Write(p []byte) (int, error) { return g.to.Write(p) }

func compressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		to := gzip.NewWriter(w)
		next.ServeHTTP(gzipWriter{w, to}, r)
		_ = to.Close()
	})
}

// Wherever a middleware compresses, clients can read a refusal. An encoding that the
// handler has prepared for its own answer is not that of the refusal.
func TestRefusalIsCompressed(t *testing.T) {
	middleware := ratehttp.Middleware()
	limit := ratehttp.RequestLimit{Limiter: runtime.New(runtime.NewMemoryStore()), Rule: nobody}.Wrap(http.NotFoundHandler())
	refuse := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ratehttp.Deny(w, r, &runtime.LimitedError{Rule: "x", RetryAfter: time.Second})
	})
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		refuse(w, r)
	})
	for name, h := range map[string]http.Handler{
		"outside": compressed(middleware(limit)), "between": middleware(compressed(limit)),
		"alone": compressed(refuse), "between, Deny": middleware(compressed(refuse)),
		"the handler's own": middleware(own),
	} {
		server := httptest.NewServer(h)
		resp, err := http.Get(server.URL) // decodes what is announced as gzip
		if err != nil {
			t.Fatal(name, err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		server.Close()
		if !json.Valid(body) || err != nil || resp.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%s: %s, %q, %v", name, resp.Status, body, err)
		}
	}
}

// A wrapper passes a nil request on, as it passes on whatever it gets.
func TestDenyWithoutRequest(t *testing.T) {
	w := httptest.NewRecorder()
	ratehttp.Deny(w, nil, &runtime.LimitedError{Rule: "x", RetryAfter: time.Second})
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" {
		t.Error(w.Code, w.Header())
	}
	w = httptest.NewRecorder()
	if !ratehttp.Error(w, nil, runtime.ErrUnavailable) || w.Code != http.StatusServiceUnavailable {
		t.Error(w.Code, w.Header())
	}
}
