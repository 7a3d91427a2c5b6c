package ratehttp

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// The fields of an admitted call cost two allocations: the text of both values, and
// the slices that the header holds them in.
func TestFieldsOfAdmittedCallAllocate(t *testing.T) {
	e, _, _ := newConfig[Option](nil).begin(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	for _, r := range []string{"shop.Orders.List", "shop.Orders"} {
		e.record.Decided(observe.DecisionEvent{
			Rule: r, Source: rule.SourceStore, Window: time.Minute, Cost: 1, Limit: 100, Max: 100, Remaining: 99, ResetAfter: time.Second,
		})
	}
	h := http.Header{policyField: nil, limitField: nil}
	allocs := testing.AllocsPerRun(100, func() {
		h[policyField], h[limitField] = nil, nil
		e.writeFields(h, http.StatusOK)
	})
	if allocs > 2 || len(h[limitField]) != 1 || len(h[policyField]) != 1 {
		t.Errorf("%v allocations for %v", allocs, h)
	}
}
