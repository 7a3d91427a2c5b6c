package rateledger

import (
	"testing"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/internal/testkit/seed"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// TestRollingDeploy takes ledger=on away from a rule, and adds it again, while both are deployed: the
// key and its count stay, and the ledger ends up with all of it.
func TestRollingDeploy(t *testing.T) {
	random := seed.New(t)
	sink, server := newSink(t), redistest.Start(t)
	for _, with := range rules()[:3] {
		without := *with
		without.Ledger, without.Keep = rule.LedgerOff, 0
		p := begin(t, server.Client(t), sink, []*runtime.Rule{with})
		old := begin(t, server.Client(t), sink, []*runtime.Rule{&without})
		used := int64(0)
		for range 12 { // of both at once, of one, of the other
			charges := []int{random.IntN(2), random.IntN(2)}
			for range 10 {
				of, r := p, with
				if charges[random.IntN(2)] == 0 {
					of, r = old, &without
				}
				c := counts{used: map[string]int64{}}
				of.use(t, &c, r, "k", 1+random.Int64N(9), random.Int64N(12))
				used += c.used[r.Name+" k"]
			}
			if a, b := p.counted(t, with, "k"), old.counted(t, &without, "k"); a != used || b != used {
				t.Fatalf("%s: %d count, and %d without a ledger, want %d", with.Name, a, b, used)
			}
		}
		c := counts{used: map[string]int64{}}
		p.use(t, &c, with, "k", 1, 1)
		used++
		ok(t, p.ledger.Flush(t.Context()))
		if has := p.billed(t, with, "k"); has != used {
			t.Errorf("%s: %d in the ledger, want %d", with.Name, has, used)
		}
	}
}
