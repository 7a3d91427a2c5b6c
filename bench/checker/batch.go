package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// A batch is some calls that one script decides, between two calls that tell
// when it was. Both charge the same fixed window, which never fills: what it
// has left numbers them in the order in which Redis executed them, over all
// processes, and the time of the charge is the clock of the script, since the
// window is older. If the numbers of the two follow each other nothing came in
// between, and everything that the batch decided happened at this one moment in
// the order of its calls. The sweep makes sure that no number is missing or
// comes twice, so no decision is lost and none was made twice.
//
// Two calls of the same microsecond are therefore never ambiguous: what was
// admitted earlier in the batch, or in an earlier batch, had been charged, and
// nothing else had.
type batch struct {
	limits []limit
	calls  []rawstore.Call
	which  []int // the limit of each call but the first and the last
	output []byte
}

var (
	tickRule = runtime.Rule{Name: "tick", Algorithm: runtime.FixedWindow, Window: rule.MaxWindow, Max: rule.MaxCount}
	tickKey  = []byte("tick")
)

func newBatch(limits []limit) *batch {
	t := &batch{limits: limits}
	for range judge.MaxBatch + 2 {
		t.calls = append(t.calls, rawstore.Call{Charges: make([]rawstore.Charge, 1)})
	}
	return t
}

// rest is for how long a key is left alone, about a quarter of the time, so
// that its window empties and it expires.
const rest = 250 * time.Millisecond

// fill makes up n calls on random keys.
func (b *batch) fill(n int) {
	round := time.Now().UnixMilli() / rest.Milliseconds()
	b.calls, b.which = b.calls[:n+2], b.which[:0]
	b.calls[0].Charges[0] = tick()
	b.calls[n+1].Charges[0] = tick()
	for i := range n {
		k := rand.IntN(len(b.limits))
		for try := 0; (round+int64(k))%4 == 0 && try < 10; try++ {
			k = rand.IntN(len(b.limits))
		}
		l := &b.limits[k]
		b.calls[i+1].Charges[0] = rawstore.Charge{
			Rule: &l.rule,
			Key:  l.key,
			Max:  l.rule.Max,
			Cost: 1 + rand.Int64N(maxCost),
			Wait: l.rule.Wait,
		}
		b.which = append(b.which, k)
	}
}

func tick() rawstore.Charge {
	return rawstore.Charge{Rule: &tickRule, Key: tickKey, Max: tickRule.Max, Cost: 1}
}

// take has the calls decided and returns the records of them, in bytes.
func (b *batch) take(ctx context.Context, store rawstore.Store) ([]byte, error) {
	if err := store.Take(ctx, b.calls); err != nil {
		return nil, err
	}
	for i := range b.calls {
		if err := b.calls[i].Err; err != nil {
			return nil, err
		}
	}
	last := len(b.calls) - 1
	first, second := &b.calls[0].Charges[0], &b.calls[last].Charges[0]
	if first.Remaining != second.Remaining+1 || first.At != second.At || first.At == 0 {
		return nil, fmt.Errorf("the calls of one batch were not decided together: it began with number %d at %d and ended with %d at %d",
			tickRule.Max-first.Remaining, first.At, tickRule.Max-second.Remaining, second.At)
	}
	number := (tickRule.Max - second.Remaining) / 2
	b.output = b.output[:0]
	for i, k := range b.which {
		c := &b.calls[i+1].Charges[0]
		r := judge.Record{Order: judge.OrderOf(number, i), Clock: first.At, At: c.At, Limit: uint16(k), Cost: uint8(c.Cost)}
		wait := c.RetryAfter
		if c.Allowed {
			r.Admitted, wait = 1, c.Delay
		}
		if c.Allowed != (c.At != 0) || wait < 0 || wait.Microseconds() > 1<<32-1 {
			return nil, fmt.Errorf("a decision contradicts itself: %+v", c.Result)
		}
		r.Wait = uint32(wait.Microseconds())
		b.output = judge.Append(b.output, &r)
	}
	return b.output, nil
}
