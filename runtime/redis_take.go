package runtime

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/denials"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// engineCalls is the memory for calls in the engine's terms.
type engineCalls struct {
	calls   []terms.Call
	charges []terms.Charge // of all calls
}

var engineCallsPool = sync.Pool{New: func() any { return new(engineCalls) }}

// translated has do decide calls in the engine's terms, and fills in what it
// found. Calls without charges are admitted.
func translated(calls []Call, do func([]terms.Call) error) error {
	e := engineCallsPool.Get().(*engineCalls)
	for i := range calls {
		for j := range calls[i].Charges {
			c := &calls[i].Charges[j]
			e.charges = append(e.charges, c.engine())
		}
	}
	rest := e.charges
	for i := range calls {
		if n := len(calls[i].Charges); n > 0 {
			e.calls = append(e.calls, terms.Call{Charges: rest[:n:n], Again: calls[i].again})
			rest = rest[n:]
		}
	}
	var err error
	if len(e.calls) > 0 {
		err = do(e.calls)
	}
	decided := e.calls
	for i := range calls {
		if calls[i].Err = nil; len(calls[i].Charges) == 0 {
			continue
		}
		calls[i].Err = decided[0].Err
		for j := range calls[i].Charges {
			calls[i].Charges[j].Result, calls[i].Charges[j].Err = Result(decided[0].Charges[j].Result), decided[0].FailureOf(j)
		}
		decided = decided[1:]
	}
	clear(e.calls)
	clear(e.charges)
	e.calls, e.charges = e.calls[:0], e.charges[:0]
	engineCallsPool.Put(e)
	return err
}

// engine returns the charge in the engine's terms.
func (c *Charge) engine() (plain terms.Charge) {
	c.Rule.setTerms(&plain.Terms, c.Max, c.Wait)
	plain.Key, plain.Cost, plain.At = c.Key, c.Cost, c.At
	return plain
}

// difference returns what a charge is to grow by when it is settled, in the
// engine's terms and without its key.
func (c *Charge) difference() (plain terms.Charge) {
	c.Rule.setTerms(&plain.Terms, c.Max, c.Wait)
	plain.Cost, plain.Charged, plain.At, plain.Mark = c.Settled-c.Cost, c.Cost, c.At, c.Mark
	return plain
}

// A decider decides calls of a caller that arrived at an instant.
type decider interface {
	decide(ctx context.Context, calls []terms.Call, arrived time.Duration) error
}

// takeRecalled decides calls: by earlier denials, and else by the store. While
// Redis does not respond denials hold until their RetryAfter is over: a caller
// that was over its limit before is let through no sooner for it.
func takeRecalled(ctx context.Context, m *denials.Memory, store decider, calls []terms.Call, arrived time.Duration) error {
	if m == nil {
		return store.decide(ctx, calls, arrived)
	}
	asked, places := make([]terms.Call, 0, len(calls)), make([]int, 0, len(calls))
	for i := range calls {
		if !m.Recall(&calls[i], arrived) {
			asked, places = append(asked, calls[i]), append(places, i)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	err := store.decide(ctx, asked, arrived)
	decided := len(calls) - len(asked)
	for k, i := range places {
		calls[i].Err, calls[i].Failure = cmp.Or(err, asked[k].Err), asked[k].Failure
		m.Release(&calls[i])
		if calls[i].Err == nil || ctx.Err() == nil && m.Call(&calls[i], clock.Now(), denials.Unanswered) {
			decided++
		}
	}
	if decided > 0 {
		return nil // the others have errors of their own
	}
	return err
}

// decide implements decider.
func (s *RedisStore) decide(ctx context.Context, calls []terms.Call, arrived time.Duration) error {
	return s.execute(ctx, script.Take, calls, arrived)
}

// execute has an operation done for calls, unless they would be counted on a
// wrong server.
func (s *RedisStore) execute(ctx context.Context, op script.Operation, calls []terms.Call, arrived time.Duration) error {
	if s.sharding.found() {
		return s.count(errSharded, calls)
	}
	return s.count(s.router.Decide(ctx, op, calls, arrived), calls)
}

// count counts calls that were not decided by error class, and returns err: why
// none of them was. That a caller gave up is no failure.
func (s *RedisStore) count(err error, calls []terms.Call) error {
	if err != nil {
		s.countOne(err, max(1, len(calls)))
		return err
	}
	for i := range calls {
		if calls[i].Err != nil {
			s.countOne(calls[i].Err, 1)
		}
	}
	return nil
}

func (s *RedisStore) countOne(err error, calls int) {
	if err == context.Canceled || err == context.DeadlineExceeded {
		return
	}
	s.failures[ClassOf(err)].Add(int64(calls))
	s.router.Doubt(err)
}

// Failures returns how many calls the store has not decided since it was made, by
// error class. Classes without calls are left out.
func (s *RedisStore) Failures() map[ErrorClass]int64 {
	counts := make(map[ErrorClass]int64)
	for class := range s.failures {
		if n := s.failures[class].Load(); n > 0 {
			counts[ErrorClass(class)] = n
		}
	}
	return counts
}
