// Package refused asks servers for what their limits refuse, as clients do.
package refused

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// Limiter returns a limiter that counts in memory.
func Limiter(t *testing.T, options ...runtime.Option) *runtime.Limiter {
	t.Helper()
	limiter := runtime.New(runtime.NewMemoryStore(), options...)
	t.Cleanup(func() {
		if err := limiter.Close(); err != nil {
			t.Error(err)
		}
	})
	return limiter
}

// Down returns a limiter whose Redis is gone, and whose limits then refuse all calls.
func Down(t *testing.T, options ...runtime.Option) *runtime.Limiter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: gone, MaxRetries: -1, DialerRetries: 1})
	limiter := runtime.New(runtime.NewRedisStore(client), append(options, runtime.WithFailurePolicy(runtime.FailClosed))...)
	t.Cleanup(func() {
		if err := errors.Join(limiter.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
	return limiter
}

// Unavailable gets GET /orders/1 of a handler whose limiter is [Down]: the answer must
// tell an outage from a refusal, and nothing of the network behind it.
func Unavailable(t *testing.T, handler http.Handler) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	UnavailableAt(t, server.URL)
}

// UnavailableAt does what [Unavailable] does for a server at a URL.
func UnavailableAt(t *testing.T, url string) {
	t.Helper()
	answer, body := get(t, url+"/orders/1")
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("GET %s without Redis: status %d, want 503", url, answer.StatusCode)
	}
	NoAddress(t, body)
}

// NoAddress checks that a text for clients has nothing of the network in it.
func NoAddress(t *testing.T, text string) {
	t.Helper()
	for _, private := range []string{"127.0.0.1", "dial", "connect", "redis", "tcp"} {
		if strings.Contains(strings.ToLower(text), private) {
			t.Errorf("a client reads %q", text)
		}
	}
}

// HTTP gets GET /orders/1 twice, of which the second must be refused, and then
// /orders/2, which must not.
//
// The handler must have found the id in the path, and must answer with it. The
// fields of an admitted answer show that its limiter had the context of the request.
func HTTP(t *testing.T, handler http.Handler) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	At(t, server.URL)
}

// At does what [HTTP] does for a server at a URL.
func At(t *testing.T, url string) {
	t.Helper()
	admitted(t, url+"/orders/1", "order 1")
	refused(t, url+"/orders/1")
	admitted(t, url+"/orders/2", "order 2")
}

// Own does what [HTTP] does for a handler that answers a refusal with a body of its own.
func Own(t *testing.T, handler http.Handler, body string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	admitted(t, server.URL+"/orders/1", "order 1")
	if got := refusal(t, server.URL+"/orders/1"); got != body {
		t.Errorf("GET /orders/1 again: %q, want %q", got, body)
	}
	admitted(t, server.URL+"/orders/2", "order 2")
}

func admitted(t *testing.T, url, want string) {
	t.Helper()
	answer, body := get(t, url)
	if answer.StatusCode != http.StatusOK || body != want {
		t.Fatalf("GET %s: status %d, %q; want 200, %q", url, answer.StatusCode, body, want)
	}
	if answer.Header.Get("RateLimit") == "" {
		t.Errorf("GET %s: no field RateLimit", url)
	}
}

func refused(t *testing.T, url string) {
	t.Helper()
	body := refusal(t, url)
	// Servers of Kratos answer with errors of Kratos.
	if !strings.Contains(body, "#quota-exceeded") && !strings.Contains(body, "RATE_LIMIT_EXCEEDED") {
		t.Errorf("GET %s again: %s, want the type quota-exceeded", url, body)
	}
}

// refusal gets what is refused, and returns its body.
func refusal(t *testing.T, url string) string {
	t.Helper()
	answer, body := get(t, url)
	if answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("GET %s again: status %d, want 429", url, answer.StatusCode)
	}
	if s, err := strconv.Atoi(answer.Header.Get("Retry-After")); err != nil || s < 1 || s > 3600 {
		t.Errorf("GET %s again: Retry-After %q, want 1 to 3600", url, answer.Header.Get("Retry-After"))
	}
	if answer.Header.Get("RateLimit") == "" {
		t.Errorf("GET %s again: no field RateLimit", url)
	}
	return body
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// Status checks the status of an answer, which is no refusal.
func Status(t *testing.T, url string, want int) {
	t.Helper()
	if answer, body := get(t, url); answer.StatusCode != want {
		t.Errorf("GET %s: status %d, %s; want %d", url, answer.StatusCode, body, want)
	}
}
