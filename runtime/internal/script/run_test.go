package script_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestLongScript has a script run for longer than the window, as it may on a
// machine that stalls: what the first calls of a trip charged must not have
// expired when the later ones are decided, which are at the same time.
func TestLongScript(t *testing.T) {
	client := ownRedis(t)
	// The time has to pass after the clock was read.
	slow := func(text string) string {
		const mark = "-- How many milliseconds"
		if !strings.Contains(text, mark) {
			t.Error("the script has changed: nothing would be slow")
		}
		return strings.Replace(text, mark, "for i = 1, 8000000 do end\n"+mark, 1)
	}
	store := newStore(client, changing(slow))
	for name, rule := range storetest.WaysOf(2*time.Millisecond, 5) {
		rule.Resolution = min(rule.Resolution, time.Millisecond) // not above the window
		calls := make([]rawstore.Call, 60)
		for i := range calls {
			calls[i] = single(rule, "long:"+name, 1)[0]
		}
		must(t, store, take, calls)
		for i := range calls { // which are at one time
			if r := calls[i].Charges[0].Result; r.Allowed != (i < int(rule.Max)) {
				t.Errorf("%s, call %d: %+v", name, i, r)
			}
		}
	}
}
