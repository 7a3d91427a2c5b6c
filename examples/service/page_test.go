package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rategen/rategen/runtime"
)

// TestPageOfLimits sees a refused caller on the page, and resets the key only where
// that is allowed.
func TestPageOfLimits(t *testing.T) {
	for _, actions := range []bool{false, true} {
		page := newPage(actions, slog.New(slog.DiscardHandler))
		h := withPage(newTestHandler(runtime.NewMemoryStore(), runtime.WithObserver(page.Observer())), page)
		for range 6 {
			get(h, "/employees/1001", "203.0.113.7:4711")
		}
		const look = "/limits/api/keys?rule=employee.EmployeeService.GetByID&key=1001"
		if w := get(h, look, ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"state":"refused"`) {
			t.Errorf("look-up: %d %s", w.Code, w.Body)
		}
		r := httptest.NewRequest(http.MethodPost, "/limits/api/actions", strings.NewReader(`{"action":"reset","rule":"employee.EmployeeService.GetByID","key":"1001"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if want := map[bool]int{false: 403, true: 200}[actions]; w.Code != want {
			t.Errorf("reset: %d %s, want %d", w.Code, w.Body, want)
		}
		want := map[bool]int{false: 429, true: 200}[actions]
		if w := get(h, "/employees/1001", "203.0.113.7:4711"); w.Code != want {
			t.Errorf("after the reset: %d, want %d", w.Code, want)
		}
	}
}
