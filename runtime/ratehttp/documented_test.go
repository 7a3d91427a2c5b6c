package ratehttp_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// The exchange in the documentation is what a server writes.
func TestDocumentedExchange(t *testing.T) {
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		rule := &runtime.Rule{Name: "shop.Orders.Place", Window: 10 * time.Second, Max: 2, Message: "too many orders, please wait"}
		limiter := newLimiter()
		h := ratehttp.Middleware()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := limiter.Take(r.Context(), rule.Limit(nil)); err != nil {
				ratehttp.Deny(w, r, err)
				return
			}
			w.WriteHeader(http.StatusCreated)
		}))
		for i := range 3 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders", nil))
			var text strings.Builder
			text.WriteString("HTTP/1.1 " + w.Result().Status + "\n")
			if err := w.Header().Write(&text); err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(text.String(), "\r\n", "\n")
			if w.Body.Len() > 0 {
				want += "\n" + w.Body.String()
			}
			if want = "```http\n" + want + "```\n"; i != 1 && !strings.Contains(string(page), want) {
				t.Errorf("docs/http.md does not have:\n%s", want)
			}
		}
	})
}

// Every check is documented, and nothing else is.
func TestDocumentedChecks(t *testing.T) {
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Mistakes that are reported")
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented[row[1]] = true
	}
	for _, code := range ratehttp.Codes() {
		if !documented[code] {
			t.Errorf("the check %s is not documented", code)
		}
		delete(documented, code)
	}
	if delete(documented, "memory_store_replicas"); len(documented) > 0 { // the runtime's
		t.Errorf("there is no check %v", documented)
	}
}
