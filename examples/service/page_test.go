package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratepage"
)

// TestPageOfLimits sees a refused caller on the page.
func TestPageOfLimits(t *testing.T) {
	page := ratepage.New(ratepage.WithKeys(), ratepage.WithLogger(slog.New(slog.DiscardHandler)))
	h := withPage(newTestHandler(runtime.NewMemoryStore(), runtime.WithObserver(page.Observer())), page)
	for range 6 {
		get(h, "/employees/1001", "203.0.113.7:4711")
	}
	const look = "/limits/api/keys?rule=employee.EmployeeService.GetByID&key=1001"
	if w := get(h, look, ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"state":"refused"`) {
		t.Errorf("look-up: %d %s", w.Code, w.Body)
	}
}
