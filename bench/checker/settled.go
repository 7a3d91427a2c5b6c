package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// forgetful is the name of the run in which every 500th settlement is left out,
// which the sums must show.
const forgetful = "forgets to settle"

// settledWindow is so long that nothing leaves it, and no bucket drains by an
// event, while the checker runs. So what Redis has counted in the end must be what
// all calls cost in the end.
const settledWindow = rule.MaxWindow

// settledMax returns the max of a key: from one that the processes exhaust to one
// that they hardly do.
func settledMax(key int) int64 { return 40 + 60*int64(key%5) }

// callSettled makes calls, and settles
// most of those that are admitted: back to nothing, for less, for more than there
// is room for. Two goroutines settle the same decision, and one of them must lose.
// It writes down what each call cost in the end.
func (w *worker) callSettled(ctx context.Context, limiter *runtime.Limiter, s *share) error {
	return record(ctx, w, s, func(k int) (judge.Record, error) {
		reserved := 1 + rand.Int64N(maxCost)
		limit := s.limits[k].rule.Limit(runtime.NewKey().AddString(strconv.Itoa(k))).WithCost(reserved)
		d, err := limiter.Take(ctx, limit)
		r := judge.Record{Limit: uint16(k), Cost: uint8(reserved)}
		if err != nil {
			return r, unlessLimited(err)
		}
		r.Admitted = 1
		if rand.IntN(2000) == 0 {
			return r, nil // seldom, or the limits would soon be full
		}
		cost := int64(0)
		if rand.IntN(1000) == 0 {
			cost = rand.Int64N(4 * maxCost)
		}
		r.Cost = uint8(cost)
		return r, w.settle(ctx, limiter, d, cost)
	})
}

// settle settles a decision twice at once, and returns an error unless that was
// done once. In the run of the control it is sometimes not done at all.
func (w *worker) settle(ctx context.Context, limiter *runtime.Limiter, d runtime.Decision, cost int64) error {
	if w.algorithms == forgetful && rand.IntN(500) == 0 {
		return nil
	}
	var second error
	var wait sync.WaitGroup
	wait.Go(func() { second = limiter.Settle(ctx, d, cost) })
	first := limiter.Settle(ctx, d, cost)
	wait.Wait()
	if first == nil && second == runtime.ErrSettled || first == runtime.ErrSettled && second == nil {
		return nil
	}
	return fmt.Errorf("two settlements of one decision: %v and %v", first, second)
}

// sumSettled compares what each key holds with what its calls have cost. A key
// that holds less admits too much, one that holds more too little.
func sumSettled(ctx context.Context, redis *server.Server, limits []limit, records []judge.Record) (*judge.Result, error) {
	client := server.NewClient(redis.Addr)
	defer client.Close()
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(server.Patience)), quiet)
	cost := make([]int64, len(limits))
	total := new(judge.Result)
	for i := range records {
		r := &records[i]
		total.Count(r, 0)
		if r.Admitted == 1 {
			cost[r.Limit] += int64(r.Cost)
		}
	}
	for k := range limits {
		declared := limits[k].rule
		declared.Max = rule.MaxLog // so that a debt shows
		d, err := limiter.Peek(ctx, declared.Limit(runtime.NewKey().AddString(strconv.Itoa(k))))
		if err != nil {
			return nil, err
		}
		held := declared.Max - d.Remaining
		if held < cost[k] {
			total.Over++
		}
		if held > cost[k] {
			total.Spurious++
		}
		if held != cost[k] {
			total.Notes = append(total.Notes, fmt.Sprintf("key %d: its calls cost %d, and Redis has counted %d", k, cost[k], held))
		}
	}
	return total, nil
}
