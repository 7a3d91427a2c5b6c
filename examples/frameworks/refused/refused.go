// Package refused asks servers for what their limits refuse, as clients do.
package refused

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

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
	// Servers of Kratos answer with errors of Kratos.
	if !strings.Contains(body, "#quota-exceeded") && !strings.Contains(body, "RATE_LIMIT_EXCEEDED") {
		t.Errorf("GET %s again: %s, want the type quota-exceeded", url, body)
	}
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
