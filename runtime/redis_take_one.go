package runtime

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/denials"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// takeOne is Take for one call, as most are, in one copy. It returns false, and
// has done nothing, if the call needs the general way.
func (s *RedisStore) takeOne(ctx context.Context, call *Call, arrived time.Duration) (done bool, err error) {
	w := batch.NewWaiter(script.Take, arrived)
	for i := range call.Charges {
		c, plain := &call.Charges[i], w.Charge()
		c.Rule.setTerms(&plain.Terms, c.Max, c.Wait)
		plain.Cost = c.Cost
		w.SetKey(c.Key)
	}
	w.EndCall(call.again)
	w.Seal()
	m := s.cfg.Denials
	if m != nil && !m.Empty() {
		if m.Recall(&w.Calls[0], arrived) {
			call.fill(&w.Calls[0])
			w.Free()
			return true, nil
		}
		if renewing := denials.Renewals(&w.Calls[0]); renewing != nil {
			defer m.Release(&terms.Call{Charges: renewing})
		}
	}
	done, whole := s.do(ctx, w)
	cause := whole
	switch {
	case !done:
		w.Free()
		return false, nil
	case whole == nil:
		call.fill(&w.Calls[0])
		w.Free()
		if cause = call.Err; cause == nil {
			return true, nil
		}
	}
	switch {
	case script.TryAgain(cause) && len(call.Charges) > 1:
		return false, nil // charged in parts
	case m != nil && ctx.Err() == nil && deniedBefore(m, call):
		call.Err, whole = nil, nil
	}
	s.countOne(cause, 1)
	return true, whole
}

// do has the router execute a waiter's calls.
func (s *RedisStore) do(ctx context.Context, w *batch.Waiter) (done bool, err error) {
	if s.sharding.found() {
		w.Free()
		return true, errSharded
	}
	return s.router.Do(ctx, w)
}

// fill fills in what was found about the call.
func (c *Call) fill(found *terms.Call) {
	c.Err = found.Err
	for i := range c.Charges {
		c.Charges[i].Result, c.Charges[i].Err = Result(found.Charges[i].Result), found.FailureOf(i)
	}
}

// deniedBefore reports whether a call that Redis has not decided is denied by a
// denial from before, and then fills in its results.
func deniedBefore(m *denials.Memory, call *Call) (denied bool) {
	_ = translated([]Call{*call}, func(calls []terms.Call) error { // which shares the charges
		denied = m.Call(&calls[0], clock.Now(), denials.Unanswered)
		return nil
	})
	return denied
}
