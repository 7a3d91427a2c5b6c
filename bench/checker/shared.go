package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/runtime/rawstore"
)

// callers is how many goroutines of a process make calls of their own when
// these share batches.
const callers = 32

// callShared makes single calls, of which those on a key and at a cost become
// one with others, and which the store may refuse by itself.
func (w *worker) callShared(ctx context.Context, store rawstore.Store, s *share) error {
	calls := []rawstore.Call{{Charges: make([]rawstore.Charge, 1)}}
	return record(ctx, w, s, func(k int) (r judge.SharedRecord, err error) {
		l := &s.limits[k]
		charge := &calls[0].Charges[0]
		*charge = rawstore.Charge{Rule: &l.rule, Key: l.key, Max: l.rule.Max, Cost: 1}
		if rand.IntN(4) == 0 {
			charge.Cost = 1 + rand.Int64N(maxCost)
		}
		r = judge.SharedRecord{Start: time.Now().UnixMicro(), Limit: uint16(k), Cost: uint8(charge.Cost)}
		if err := store.Take(ctx, calls); err != nil {
			return r, err
		}
		if err := calls[0].Err; err != nil {
			return r, err
		}
		r.End = time.Now().UnixMicro()
		if charge.Allowed != (charge.At != 0) || charge.Allowed && charge.RetryAfter != 0 {
			return r, fmt.Errorf("a decision contradicts itself: %+v", charge.Result)
		}
		r.At, r.Wait, r.Left = charge.At, charge.RetryAfter, charge.Remaining
		if charge.Recalled {
			r.Recalled = 1
		}
		if charge.Recalled && rand.IntN(2) == 0 {
			time.Sleep(rand.N(2 * time.Millisecond)) // or there would be nothing else
		}
		return r, nil
	})
}
