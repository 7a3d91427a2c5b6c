package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// unlengthened is the name of the run in which Redis counts leased units no longer
// than other events, which the sweep must find out.
const unlengthened = "lease control"

// callLeased makes calls. The callers of a process hurry and rest together, for as long as a lease
// each: so units are taken in haste and used late.
func (w *worker) callLeased(ctx context.Context, limiter *runtime.Limiter, s *share) error {
	return record(ctx, w, s, func(k int) (r judge.SharedRecord, err error) {
		declared := &s.limits[k].rule
		defer func() { time.Sleep(w.rest(declared)) }()
		cost := int64(1)
		if rand.IntN(8) == 0 {
			cost = 1 + rand.Int64N(maxCost)
		}
		limit := declared.Limit(runtime.NewKey().AddString(strconv.Itoa(k))).WithCost(cost)
		r = judge.SharedRecord{Start: time.Now().UnixMicro(), Limit: uint16(k), Cost: uint8(cost)}
		d, err := limiter.Take(ctx, limit)
		r.End = time.Now().UnixMicro()
		switch {
		case errors.Is(err, runtime.ErrLimited):
			return r, nil
		case err != nil:
			return r, err
		case d.Source == rule.SourceLease:
			r.Recalled = 1
		case d.Source != rule.SourceStore:
			return r, fmt.Errorf("decided by %v", d.Source)
		}
		r.At = r.End
		return r, nil
	})
}

// busy is for how much of the time the callers would pause that exhaust the limits,
// were they always in the mood that is 1.
const busy = 0.3

// rest returns how long a caller of this process pauses now.
func (w *worker) rest(rule *runtime.Rule) time.Duration {
	phase := uint64(time.Now().UnixNano()) / uint64(rule.Lease)
	mood := []float64{0.1, 0.3, 1, 2, 8}[rand.New(rand.NewPCG(phase, uint64(os.Getpid()))).IntN(5)]
	each := float64(rule.Window) / float64(rule.Max) * float64(w.processes) * callers / float64(w.keys)
	return time.Duration(rand.ExpFloat64() * mood * each * busy)
}
