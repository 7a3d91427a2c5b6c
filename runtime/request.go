package runtime

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/rategen/rategen/runtime/internal/receipts"
)

// A request is the memory that one call needs on its way to the store and
// back. It is pooled, so that a call allocates nothing.
type request struct {
	call     [1]Call
	charges  []Charge
	keys     []byte
	peeking  bool     // nothing is decided, so nothing is reported
	whole    []Charge // the originals of charges that have this process's share
	receipts receipts.Book
	turn     *turn // in a line for permits, or nil
}

var requests = sync.Pool{New: func() any { return new(request) }}

func newRequest() *request { return requests.Get().(*request) }

func (r *request) free() {
	r.leaveLine(false)
	clear(r.charges)
	clear(r.whole)
	r.charges, r.whole, r.keys, r.call[0] = r.charges[:0], r.whole[:0], r.keys[:0], Call{}
	r.peeking = false
	if cap(r.keys) <= 16*maxKey {
		requests.Put(r)
	}
}

// fill turns limits into charges and leaves out what needs no decision: a
// limit at no cost, one whose key is invalid while its policy is open, and a
// shadow limit that is invalid or could never admit the call. The error is
// [ErrInvalidLimit], or [ErrInvalidKey] if the policy is closed.
func (r *request) fill(ctx context.Context, l *Limiter, limits []Limit) error {
	if len(limits) > MaxLimits {
		return fmt.Errorf("%w: %d limits on one call, the maximum is %d", ErrInvalidLimit, len(limits), MaxLimits)
	}
	for i := range limits {
		limit := &limits[i]
		rule, max, on, err := l.effective(limit)
		if err != nil {
			if rule != nil && rule.Mode == Shadow && !r.peeking {
				l.events.failure(ctx, rule, l.policy(rule), err)
				continue
			}
			return err
		}
		if !on || limit.cost == 0 {
			continue
		}
		if err := limit.key.invalid(); err != nil {
			policy := l.policy(rule)
			l.events.failure(ctx, rule, policy, err)
			switch policy {
			case FailOpen:
				continue
			case FailClosed:
				return fmt.Errorf("rule %q: %w", rule.Name, err)
			}
		}
		charge := Charge{Rule: rule, Max: max, Cost: limit.cost, limit: uint8(i)}
		if charge.emptyPart = limit.key.hasEmpty(); charge.emptyPart && !r.peeking {
			l.events.log.emptyPart(rule)
		}
		if charge.unsatisfiable() && rule.Mode == Shadow {
			if !r.peeking {
				charge.RetryAfter = Never
				l.events.unsatisfiable(ctx, &charge)
			}
			continue
		}
		start := len(r.keys)
		r.keys = appendKey(r.keys, l.namespace, rule, &limit.key)
		charge.Key = r.keys[start:len(r.keys):len(r.keys)]
		for j := range r.charges {
			if bytes.Equal(r.charges[j].Key, charge.Key) {
				return fmt.Errorf("%w: rules %q and %q of one call have the same prefix and key", ErrInvalidLimit, r.charges[j].Rule.Name, rule.Name)
			}
		}
		r.charges = append(r.charges, charge)
	}
	r.call[0].Charges = r.charges
	return nil
}

// unsatisfiable reports whether no waiting would admit the charge.
func (c *Charge) unsatisfiable() bool { return c.Max == 0 || c.Cost > c.capacity() }

// denyUnsatisfiable marks the charges that can never be admitted as denied for
// ever, and reports whether there is one.
func (r *request) denyUnsatisfiable() bool {
	found := false
	for i := range r.charges {
		c := &r.charges[i]
		c.Result = Result{Allowed: true}
		if c.unsatisfiable() {
			c.Result = Result{RetryAfter: Never}
			found = true
		}
	}
	return found
}

// pass admits the request's call without counting it.
func (r *request) pass() {
	for i := range r.call[0].Charges {
		c := &r.call[0].Charges[i]
		c.Result = Result{Allowed: true, Remaining: c.capacity()}
	}
}

// chargeOf returns the charge for one of the call's limits.
func (r *request) chargeOf(limit uint8) *Charge {
	for i := range r.charges {
		if r.charges[i].limit == limit {
			return &r.charges[i]
		}
	}
	return nil
}
