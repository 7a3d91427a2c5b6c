package runtime_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
)

// waitingRule returns a rule of so many permits that a call may wait for.
func waitingRule(max int64, wait time.Duration) *runtime.Rule {
	rule := permitRule(max)
	rule.Wait = wait
	return rule
}

// A program that makes new rules all the time does not fill its memory with those
// that were in flight.
func TestInFlightIsBounded(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	for i := range 12_000 {
		limit := (&runtime.Rule{Name: fmt.Sprint(i), Algorithm: runtime.Concurrency, Window: time.Minute, Max: 1}).Limit(nil)
		settled(t, limiter, taken(t, limiter, limit))
	}
	between(t, "names", len(bridge.LimiterOf(limiter).Permits()), 1, 10_001)
}
