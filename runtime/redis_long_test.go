package runtime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestLongScript has a script run for longer than the window, as it may on a
// machine that stalls: what the first calls of a trip charged must not have
// expired when the later ones are decided, which are at the same time.
func TestLongScript(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	// The time has to pass after the clock was read.
	slow := func(text string) string {
		const mark = "-- How many milliseconds"
		if !strings.Contains(text, mark) {
			t.Error("the script has changed: nothing would be slow")
		}
		return strings.Replace(text, mark, "for i = 1, 8000000 do end\n"+mark, 1)
	}
	store := runtime.NewRedisStore(client, patient, runtime.Change(slow), runtime.WithDenialMemory(0))
	for name, rule := range serverRules(2*time.Millisecond, 5) {
		rule.Resolution = min(rule.Resolution, time.Millisecond) // not above the window
		calls := make([]rawstore.Call, 60)
		for i := range calls {
			calls[i].Charges = []rawstore.Charge{{Rule: rule, Key: []byte("long:" + name), Max: rule.Max, Cost: 1}}
		}
		if err := rawstore.On(store).Take(ctx, calls); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		admitted := int64(0)
		for i := range calls {
			if calls[i].Charges[0].Allowed {
				admitted++
			}
		}
		if admitted != rule.Max {
			t.Errorf("%s: %d calls at one time admitted, want %d", name, admitted, rule.Max)
		}
	}
}
