package ratehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

var hourly = &runtime.Rule{Name: "hourly", Window: time.Hour, Max: 1000}

// take charges the hourly limit.
func take(t testing.TB, limiter *runtime.Limiter, r *http.Request) {
	if _, err := limiter.Take(r.Context(), hourly.Limit(nil)); err != nil {
		t.Error(err)
	}
}

// Whatever way a handler sends its header, the fields are in it, over HTTP/1 and
// HTTP/2, and in no trailer.
func TestWaysToWrite(t *testing.T) {
	ways := map[string]struct {
		serve  func(http.ResponseWriter, *http.Request)
		status int
		body   string
	}{
		"nothing":     {func(http.ResponseWriter, *http.Request) {}, 200, ""},
		"Write":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }, 200, "ok"},
		"WriteString": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }, 200, "ok"},
		"ReadFrom":    {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("ok")) }, 200, "ok"},
		"WriteHeader": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201) }, 201, ""},
		"204":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 204, ""},
		"304":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, 304, ""},
		"500":         {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 500) }, 500, "no\n"},
		"redirect":    {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }, 302, "<a href=\"/x\">Found</a>.\n\n"},
		"Flush": {func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			_, _ = w.Write([]byte("ok"))
		}, 200, "ok"},
		"FlushError": {func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
			_, _ = w.Write([]byte("ok"))
		}, 200, "ok"},
		"1xx": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</a.css>; rel=preload")
			w.WriteHeader(103)
			w.WriteHeader(200)
		}, 200, ""},
		"deadline": {func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				panic(err)
			}
		}, 200, ""},
		"CloseNotify": {func(w http.ResponseWriter, _ *http.Request) {
			w.(interface{ CloseNotify() <-chan bool }).CloseNotify()
		}, 200, ""},
	}
	for name, way := range ways {
		for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
			t.Run(name+" "+proto, func(t *testing.T) {
				limiter := newLimiter()
				server := httptest.NewUnstartedServer(ratehttp.Middleware()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					take(t, limiter, r)
					way.serve(w, r)
				})))
				server.EnableHTTP2 = proto == "HTTP/2.0"
				server.StartTLS()
				defer server.Close()
				for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
					checkWay(t, server, proto, method, way.status, way.body)
				}
			})
		}
	}
}

func checkWay(t *testing.T, server *httptest.Server, proto, method string, status int, body string) {
	t.Helper()
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		if len(h["Ratelimit"]) > 0 || len(h["Ratelimit-Policy"]) > 0 {
			t.Errorf("%s: fields in the informational answer %d", method, code)
		}
		return nil
	}})
	r, err := http.NewRequestWithContext(ctx, method, server.URL, nil)
	limittest.OK(t, err)
	resp, err := client.Do(r)
	limittest.OK(t, err)
	defer resp.Body.Close()
	got := bodyOf(t, resp)
	if resp.Proto != proto || resp.StatusCode != status || method == http.MethodGet && got != body || method == http.MethodHead && got != "" {
		t.Errorf("%s: %s %d %q", method, resp.Proto, resp.StatusCode, got)
	}
	if items := parse(t, resp.Header, "RateLimit"); len(items) != 1 || items[0].Name != "hourly" {
		t.Errorf("%s: RateLimit %v", method, items)
	}
	if items := parse(t, resp.Header, "RateLimit-Policy"); len(items) != 1 || items[0].Params["q"] != int64(1000) {
		t.Errorf("%s: RateLimit-Policy %v", method, items)
	}
	if len(resp.Trailer) > 0 {
		t.Errorf("%s: trailer %v", method, resp.Trailer)
	}
}

// A copy that fails before its first byte has not begun the answer.
func TestReadFromFailsAtOnce(t *testing.T) {
	for name, broken := range map[string]error{
		"a refusal":     fmt.Errorf("reading: %w", &runtime.LimitedError{Rule: "reads"}),
		"another error": errors.New("broken"),
	} {
		var refundStatus int
		limit := ratehttp.RequestLimit{
			Limiter: runtime.New(runtime.NewMemoryStore()), Rule: hourly,
			Refund: func(status int) bool { refundStatus = status; return false },
		}
		h := limit.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(w, iotest.ErrReader(broken))
			if !ratehttp.Error(w, r, err) {
				http.Error(w, "bad gateway", http.StatusBadGateway)
			}
		}))
		want := http.StatusBadGateway
		if errors.Is(broken, runtime.ErrLimited) {
			want = http.StatusTooManyRequests
		}
		server := httptest.NewServer(h)
		resp, err := http.Get(server.URL)
		limittest.OK(t, err)
		resp.Body.Close()
		server.Close() // waits for the handler
		if resp.StatusCode != want || refundStatus != want {
			t.Errorf("%s: the client got %d and Refund %d, not %d", name, resp.StatusCode, refundStatus, want)
		}
	}
}

// A panic goes on its way, and a middleware that contains it finds the fields.
func TestHandlerPanics(t *testing.T) {
	limiter := newLimiter()
	recovers := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if value := recover(); value != http.ErrAbortHandler {
					t.Errorf("%v", value)
				}
				w.WriteHeader(http.StatusInternalServerError)
			}()
			next.ServeHTTP(w, r)
		})
	}
	resp := answerOf(recovers(ratehttp.Middleware()(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		take(t, limiter, r)
		panic(http.ErrAbortHandler)
	}))))
	if resp.StatusCode != 500 || len(parse(t, resp.Header, "RateLimit")) != 1 {
		t.Error(resp.StatusCode, resp.Header)
	}
}

// A client that has gone gets no answer, and nothing breaks.
func TestClientThatHasGone(t *testing.T) {
	limiter := newLimiter()
	served := make(chan error, 1)
	server := httptest.NewServer(ratehttp.Middleware()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		_, err := limiter.Take(r.Context(), hourly.Limit(nil))
		ratehttp.Deny(w, r, err)
		served <- err
	})))
	defer server.Close()
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if _, err := server.Client().Do(r); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
