package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

const (
	// streams is how many a process has at once.
	streams = 125
	// streamReserve is how long what a stream holds outlives its process.
	streamReserve = 2 * time.Second
	// streamPause is how long a stream pauses on average between two messages.
	streamPause = 100 * time.Millisecond
	// streamCost is what a message costs at most, and half of what a call reserves that is
	// settled.
	streamCost = 9
	// lived is the limit in the last record of a process that was not killed.
	lived = math.MaxUint16
)

// tenant is a budget that every stream is charged to as well, three times as much.
var tenant = &runtime.Rule{Name: "tenant", Algorithm: runtime.FixedWindow, Period: rule.Year, Max: rule.MaxCount, Reserve: streamReserve}

// yearly makes a rule the budget of a year, which is a part of what all streams try to use: some
// are used up, and some are not.
func yearly(r *runtime.Rule, key int, c config) {
	each := float64(c.decisions) * (1 + streamCost) / 2 / float64(c.keys)
	r.Algorithm, r.Window, r.Period, r.Reserve = runtime.FixedWindow, 0, rule.Year, streamReserve
	r.Max = 100 + int64(each*[]float64{0.4, 0.8, 1.2, 2}[key%4])
}

// limitsOf returns what a stream on a key is charged to for so many units.
func limitsOf(rule *runtime.Rule, key int, units int64) []runtime.Limit {
	return []runtime.Limit{
		rule.Limit(runtime.NewKey().AddString(strconv.Itoa(key))).WithCost(units),
		tenant.Limit(runtime.NewKey()).WithCost(3 * units),
	}
}

// callStreams has streams run until no message is left or the time is over, and writes down
// each message that was paid.
func (w *worker) callStreams(ctx context.Context, limiter *runtime.Limiter, s *share) error {
	more := func() bool { return w.more(ctx, s) }
	var all errgroup.Group
	for range streams {
		all.Go(func() (err error) {
			for err == nil && more() {
				k := rand.IntN(len(s.limits))
				err = stream(ctx, limiter, &s.limits[k].rule, k, more, s.write)
				pause(ctx, rand.N(2*streamPause))
			}
			return unlessLimited(err)
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	if err := limiter.Close(); err != nil {
		return err
	}
	return paid(lived, 0, s.write)
}

// stream is one call: a stream of some messages, which its caller may cancel while it is
// charged, or one in four times a call that is settled at less than it has reserved.
func stream(ctx context.Context, limiter *runtime.Limiter, r *runtime.Rule, key int, more func() bool, write func([]byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reserved, settled := int64(1), rand.IntN(4) == 0
	if settled {
		reserved = 2 * streamCost
	}
	d, err := limiter.Take(ctx, limitsOf(r, key, reserved)...)
	if err != nil {
		return unlessLimited(err)
	}
	if d.Source != rule.SourceStore {
		return fmt.Errorf("decided by %v", d.Source)
	}
	if settled {
		pause(ctx, rand.N(2*streamPause))
		units := rand.Int64N(reserved + 1)
		if err := limiter.Settle(ctx, d, units, 3*units); err != nil {
			return err
		}
		return paid(key, units, write)
	}
	m := limiter.Meter(ctx, d, 0, 0)
	defer m.Close()
	messages := rand.IntN(100)
	for n := 0; n <= messages && more(); n++ {
		if n == messages && rand.IntN(4) == 0 {
			go cancel() // at any moment
		}
		units := 1 + rand.Int64N(streamCost)
		if err := m.Charge(units, 3*units); err != nil {
			return unlessLimited(err)
		}
		if err := paid(key, units, write); err != nil {
			return err
		}
		pause(ctx, rand.N(2*streamPause))
	}
	return nil
}

// unlessLimited returns an error that a stream does not end with in the ordinary way.
func unlessLimited(err error) error {
	if errors.Is(err, runtime.ErrLimited) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// paid writes down units that are used.
func paid(key int, units int64, write func([]byte) error) error {
	now := time.Now().UnixMicro()
	r := judge.SharedRecord{Start: now, End: now, At: now, Limit: uint16(key), Cost: uint8(units)}
	return write(judge.Append(nil, &r))
}

// patient uses what is left of a budget, unit by unit, and returns how much that was.
func patient(ctx context.Context, limiter *runtime.Limiter, rule *runtime.Rule, key int) (units int64, err error) {
	d, err := limiter.Take(ctx, limitsOf(rule, key, 1)...)
	if err != nil {
		return 0, unlessLimited(err)
	}
	m := limiter.Meter(ctx, d, 0, 0)
	defer m.Close()
	for err = m.Charge(1, 3); err == nil; err = m.Charge(1, 3) {
		units++
	}
	return units, unlessLimited(err)
}
