package ratepage

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHosts wants requests for foreign names to be refused, whatever they ask for.
func TestHosts(t *testing.T) {
	t.Parallel()
	page := New(WithHosts("limits.example.com", "localhost"))
	defer page.Close()
	for host, served := range map[string]bool{
		"limits.example.com": true, "limits.example.com:8080": true, "LIMITS.Example.com.": true, "localhost:80": true,
		"127.0.0.1:8080": true, "[::1]:8080": true, "::1": true, "10.1.2.3": true,
		"evil.example": false, "evil.example:8080": false, "limits.example.com.evil.example": false, "xlimits.example.com": false, "": false, "127.0.0.1.evil.example": false,
	} {
		for _, target := range []struct{ method, path string }{{"GET", "/api/state"}, {"GET", "/api/rules"}, {"POST", "/api/actions"}, {"GET", "/page.js"}} {
			r := httptest.NewRequest(target.method, target.path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			page.ServeHTTP(w, r)
			if refused := w.Code == http.StatusMisdirectedRequest; refused == served {
				t.Errorf("%s %s of %q: %d", target.method, target.path, host, w.Code)
			}
		}
	}
	for _, host := range []string{"", "a:80", "https://a", "a b"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("host %q was taken", host)
				}
			}()
			WithHosts(host)
		}()
	}
}
