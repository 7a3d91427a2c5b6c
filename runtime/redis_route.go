package runtime

import (
	"cmp"
	"context"
	"slices"
)

// decide has calls executed and counts those that were not decided.
func (s *RedisStore) decide(ctx context.Context, op string, calls []Call) error {
	var err error
	if s.nodes == nil && len(calls) <= maxAboard { // what most calls are
		err = s.terminal.travel(ctx, op, 0, calls, instantOf(calls))
	} else {
		err = s.route(ctx, op, calls)
	}
	if err != nil {
		s.count(err, len(calls))
		return err
	}
	for i := range calls {
		if err := calls[i].Err; err != nil {
			s.count(err, 1)
		}
	}
	return nil
}

// route executes calls by one script, or on a cluster by one for each slot.
func (s *RedisStore) route(ctx context.Context, op string, calls []Call) error {
	if s.nodes == nil {
		return s.share(ctx, &s.terminal, op, 0, calls)
	}
	if !s.together(calls) {
		return s.decideApart(ctx, op, calls)
	}
	if len(calls) == 0 {
		return nil
	}
	key := calls[0].Charges[0].Key
	slot := s.slot(key)
	terminal, err := s.nodes.terminal(ctx, key, slot)
	if err != nil {
		return err
	}
	return s.share(ctx, terminal, op, s.nodes.slot(slot), calls)
}

// share executes calls on trips shared with other callers, maxAboard of them at
// a time so that Redis is free for others in between. Once the caller has gone,
// or has waited in vain, Redis is not asked about the rest.
func (s *RedisStore) share(ctx context.Context, t *terminal, op string, slot int, calls []Call) error {
	if len(calls) <= maxAboard {
		return t.travel(ctx, op, slot, calls, instant())
	}
	decided, last, over := false, error(nil), error(nil)
	for part := range slices.Chunk(calls, maxAboard) {
		err := cmp.Or(over, ctx.Err())
		if err == nil {
			err = t.travel(ctx, op, slot, part, instant())
		}
		if err == nil {
			decided = true
			continue
		}
		if _, late := err.(lateError); late {
			over = err
		}
		last = err
		for i := range part {
			part[i].Err = err
		}
	}
	if decided {
		return nil
	}
	return last
}
