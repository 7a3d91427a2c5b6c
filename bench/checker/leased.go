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

// A leasedShape is the limit of a key of a leased run.
type leasedShape struct {
	window, lease time.Duration
	max           int64
}

// leasedShapes are what keys have in turn: leases that are short for their window,
// and ones that are half as long.
var leasedShapes = []leasedShape{
	{time.Second, 50 * time.Millisecond, 2400},
	{500 * time.Millisecond, 250 * time.Millisecond, 1200},
	{200 * time.Millisecond, 20 * time.Millisecond, 300},
	{300 * time.Millisecond, 100 * time.Millisecond, 700},
}

// shortShape is what all keys of the control have: a lease so long for its window that
// much is used late.
var shortShape = leasedShape{240 * time.Millisecond, 160 * time.Millisecond, 500}

// shapeOf returns the limit of a key.
func shapeOf(name string, key int) leasedShape {
	if name == unlengthened {
		return shortShape
	}
	return leasedShapes[key%len(leasedShapes)]
}

// callLeased makes calls until none is left or the time is over, and writes down
// each. The callers of a process hurry and rest together, for as long as a lease
// each: so units are taken in haste and used late.
func (w *worker) callLeased(ctx context.Context, limiter *runtime.Limiter, s *share) error {
	var output []byte
	for w.more(ctx, s) {
		k := rand.IntN(len(s.limits))
		declared := &s.limits[k].rule
		cost := int64(1)
		if rand.IntN(8) == 0 {
			cost = 1 + rand.Int64N(maxCost)
		}
		limit := declared.Limit(runtime.NewKey().AddString(strconv.Itoa(k))).WithCost(cost)
		r := judge.SharedRecord{Start: time.Now().UnixMicro(), Limit: uint16(k), Cost: uint8(cost)}
		d, err := limiter.Take(ctx, limit)
		r.End = time.Now().UnixMicro()
		switch {
		case errors.Is(err, runtime.ErrLimited):
		case err != nil:
			return err
		case d.Source == rule.SourceLease:
			r.At, r.Recalled = r.End, 1
		case d.Source == rule.SourceStore:
			r.At = r.End
		default:
			return fmt.Errorf("decided by %v", d.Source)
		}
		if output = judge.Append(output, &r); len(output) > 1<<13 {
			if err := s.write(output); err != nil {
				return err
			}
			output = output[:0]
		}
		time.Sleep(w.rest(declared))
	}
	return s.write(output)
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
