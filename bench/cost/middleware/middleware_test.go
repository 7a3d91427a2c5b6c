package middleware

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// A sink is a writer that costs nothing itself.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

func BenchmarkMiddleware(b *testing.B) {
	for verdict, max := range map[string]int{"admitted": 1_000_000_000, "refused": 1} {
		all := handlers(max)
		names := []string{}
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if name == "none" && verdict == "refused" {
				continue
			}
			b.Run(verdict+"/"+name, func(b *testing.B) {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				w := &sink{header: http.Header{}}
				all[name].ServeHTTP(w, r)
				b.ReportAllocs()
				for b.Loop() {
					clear(w.header)
					all[name].ServeHTTP(w, r)
				}
			})
		}
	}
}

// Each handler admits and refuses what it should, so that equal work is measured.
func TestHandlers(t *testing.T) {
	for name, h := range handlers(1) {
		for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
			if name == "none" {
				want = http.StatusOK
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			if w.Code != want {
				t.Errorf("%s answers request %d with %d, not %d", name, i, w.Code, want)
			}
		}
	}
}
