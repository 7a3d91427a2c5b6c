package rateledger

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/internal/testkit/seed"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// TestRestore loses Redis at random, restores it once or twice or not at once, and resets counts: the
// ledger keeps all that was used, and limits count what was used since the last reset.
func TestRestore(t *testing.T) {
	random := seed.New(t)
	sink, client := newSink(t), redistest.Start(t).Client(t)
	all := rules()
	p := begin(t, client, sink, all)
	c, counts := counts{used: map[string]int64{}}, map[string]int64{} // and since the last reset
	for round := range 12 {
		use := func(n int) {
			for range n {
				r, key, cost := all[random.IntN(len(all))], fmt.Sprint("k", random.IntN(6)), 1+random.Int64N(9)
				p.use(t, &c, r, key, cost, cost)
				counts[r.Name+" "+key] += cost
			}
		}
		use(random.IntN(60))
		for range random.IntN(4) {
			r, key := all[random.IntN(len(all))], fmt.Sprint("k", random.IntN(6))
			ok(t, p.limiter.Reset(t.Context(), r.Limit(runtime.NewKey().AddString(key))))
			counts[r.Name+" "+key] = 0
			ok(t, p.ledger.scan(t.Context())) // a reset is no charge
		}
		ok(t, p.ledger.Flush(t.Context()))
		if random.IntN(2) == 0 {
			ok(t, client.FlushDB(t.Context()).Err())
			use(random.IntN(3) * 10)
		}
		for range 1 + random.IntN(2) {
			if _, err := p.ledger.Restore(t.Context()); err != nil && err != errHashed {
				t.Fatal(err)
			}
		}
		ok(t, p.ledger.Flush(t.Context()))
		c.compare(t, p)
		for _, r := range all {
			for i := range 6 {
				key := fmt.Sprint("k", i)
				if used := p.counted(t, r, key); used != counts[r.Name+" "+key] && r.Ledger != rule.LedgerHash {
					t.Fatalf("round %d: %s %s: %d count, want %d", round, r.Name, key, used, counts[r.Name+" "+key])
				}
			}
		}
	}
}

// TestRestoreMany wants each of many keys restored once, page by page.
func TestRestoreMany(t *testing.T) {
	sink, client := newSink(t), redistest.Start(t).Client(t)
	all := rules()[:1]
	p := begin(t, client, sink, all)
	const keys = restoreRows*2 + 7
	limits := make([]runtime.Limit, keys)
	for i := range limits {
		limits[i] = all[0].Limit(runtime.NewKey().AddString(fmt.Sprint(i, ":", rand.N(1000)))).WithCost(int64(i + 1))
	}
	for i, o := range p.limiter.TakeEach(t.Context(), limits...) {
		if o.Err != nil {
			t.Fatal(i, o.Err)
		}
	}
	ok(t, p.ledger.Flush(t.Context()))
	ok(t, client.FlushDB(t.Context()).Err())
	for _, want := range []int{keys, 0} {
		if n, err := p.ledger.Restore(t.Context()); n != want || err != nil {
			t.Errorf("%d restored, %v, want %d", n, err, want)
		}
	}
	for i := 0; i < keys; i += 371 {
		usage, err := p.limiter.Usage(t.Context(), limits[i])
		ok(t, err)
		if used := rule.MaxAmount - usage[0].Remaining; used != int64(i+1) {
			t.Errorf("key %d: %d count", i, used)
		}
	}
}
