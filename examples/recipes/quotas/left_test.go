package quotas

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rategen/rategen/runtime/ratetest"
)

// TestLeft wants a tenant to see what is left of its quota by its plan, and of no other's.
func TestLeft(t *testing.T) {
	limiter := ratetest.New(t)
	service := NewRateLimitedReports(reports{}, limiter.Limiter)
	left := Left(service, func(r *http.Request) Tenant {
		return Tenant{r.Header.Get("Tenant"), int64(len(r.Header.Get("Tenant")))}
	})
	for range 2 {
		if _, err := service.Export(t.Context(), Tenant{"acme", 4}, "sales"); err != nil {
			t.Fatal(err)
		}
	}
	for tenant, want := range map[string]string{"acme": `"limit":4,"remaining":2,`, "globex": `"limit":6,"remaining":6,`} {
		r := httptest.NewRequest(http.MethodGet, "/quota", nil)
		r.Header.Set("Tenant", tenant)
		w := httptest.NewRecorder()
		left.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), want) || w.Header().Get("RateLimit") == "" {
			t.Errorf("%s: got %s %v, want %s", tenant, w.Body, w.Header(), want)
		}
	}
}
