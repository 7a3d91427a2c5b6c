package runtime

import (
	"bytes"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/rategen/rategen/runtime/internal/receipts"
)

// A request is the memory that one call needs on its way to the store and
// back. It is pooled, so that a call allocates nothing.
type request struct {
	call     [1]Call
	charges  []Charge // those of limits in shadow mode behind the others
	keys     []byte
	peeking  bool // nothing is decided
	again    bool // the call is decided again, after a wait
	receipts receipts.Book
	turn     *turn        // in a line for permits, or nil
	terms    *overrideSet // in force when the charges were made, or nil
	waiting  waiting      // for the call's turn
}

var requests = sync.Pool{New: func() any { return new(request) }}

func newRequest() *request { return requests.Get().(*request) }

func (r *request) free() {
	r.leaveLine(false)
	r.clear()
	r.call[0], r.peeking, r.again, r.terms = Call{}, false, false, nil
	if cap(r.keys) <= 16*maxKey {
		requests.Put(r)
	}
}

func (r *request) clear() {
	clear(r.charges)
	r.charges, r.keys, r.call[0].Charges, r.call[0].Err = r.charges[:0], r.keys[:0], nil, nil
}

// fill turns limits into charges by what holds now. It leaves out what needs no
// decision: a limit that is switched off or at no cost, one whose key is invalid
// while its policy is open, and a shadow limit that is invalid, could never admit
// the call or has the key of another limit. The error is [ErrInvalidLimit], or
// [ErrInvalidKey] if the policy is closed.
func (r *request) fill(ctx context.Context, l *Limiter, limits []Limit) error {
	if len(limits) > MaxLimits {
		return fmt.Errorf("%w: %d limits on one call, the maximum is %d", ErrInvalidLimit, len(limits), MaxLimits)
	}
	r.clear()
	r.terms = l.overrides.Load()
	for i := range limits {
		if err := r.add(ctx, l, &limits[i], uint8(i)); err != nil {
			return err
		}
	}
	r.call[0].Charges, r.call[0].again = r.charges, r.again
	return nil
}

// told reports whether nobody wants to hear what is wrong with the limits: nothing
// is decided, or it was said before.
func (r *request) told() bool { return r.peeking || r.again }

// add adds the charge for a limit, unless it needs no decision.
func (r *request) add(ctx context.Context, l *Limiter, limit *Limit, index uint8) error {
	rule, max, on, err := l.effective(limit)
	if err != nil {
		if rule != nil && !rule.Mode.Denies() && !r.peeking {
			r.failed(ctx, l, rule, err)
			return nil
		}
		return err
	}
	if !on || limit.cost == 0 {
		return nil
	}
	if !rule.Mode.Denies() && !r.peeking {
		if err := l.resting(rule); err != nil {
			r.failed(ctx, l, rule, err)
			return nil
		}
	}
	if err := limit.key.invalid(); err != nil {
		r.failed(ctx, l, rule, err)
		switch l.policy(rule) {
		case FailOpen:
			return nil
		case FailClosed:
			return fmt.Errorf("rule %q: %w", rule.Name, err)
		}
	}
	charge := Charge{Rule: rule, Max: max, Cost: limit.cost, limits: 1 << index, own: limit.max}
	if charge.emptyPart = limit.key.hasEmpty(); charge.emptyPart && !r.told() {
		l.events.log.emptyPart(rule)
	}
	if charge.unsatisfiable() && !rule.Mode.Denies() {
		if !r.told() {
			charge.RetryAfter = Never
			l.events.unsatisfiable(ctx, &charge)
			exceed(ctx, []Charge{charge})
		}
		return nil
	}
	start := len(r.keys)
	r.keys = appendKey(r.keys, l.namespace, rule, &limit.key)
	charge.Key = r.keys[start:len(r.keys):len(r.keys)]
	return r.place(l, charge)
}

// failed reports why a limit is left out.
func (r *request) failed(ctx context.Context, l *Limiter, rule *Rule, err error) {
	if !r.told() {
		l.events.failure(ctx, rule, l.policy(rule), err)
	}
}

// place puts a charge in its place: behind all others, if its limit is in shadow
// mode, and else before those that are. Of charges on one key there is one: a shadow
// limit is left out, and others are charged together.
func (r *request) place(l *Limiter, c Charge) error {
	at := 0 // behind the last charge that is not in shadow mode
	for i := 0; i < len(r.charges); i++ {
		o := &r.charges[i]
		switch same := bytes.Equal(o.Key, c.Key); {
		case same && !c.Rule.Mode.Denies():
			l.events.log.sharedKey(c.Rule, o.Rule)
			return nil
		case same && !o.Rule.Mode.Denies():
			l.events.log.sharedKey(o.Rule, c.Rule)
			r.charges = slices.Delete(r.charges, i, i+1)
			i--
			continue
		case same:
			return o.join(&c)
		}
		if o.Rule.Mode == Enforce || !c.Rule.Mode.Denies() {
			at = i + 1
		}
	}
	r.charges = slices.Insert(r.charges, at, c)
	return nil
}

// join makes a charge that of another one's limit, too. Both have one key. It then
// costs what both do, but no more than the limit could ever admit: that a call names
// a key twice makes it none that is never admitted. The lower max holds.
func (c *Charge) join(o *Charge) error {
	if !c.Rule.countsAs(o.Rule) {
		return fmt.Errorf("%w: rules %q and %q of one call have the same prefix and key, and count in different ways: give them prefixes of their own", ErrInvalidLimit, c.Rule.Name, o.Rule.Name)
	}
	c.Max = min(c.Max, o.Max)
	c.Cost = max(c.Cost, o.Cost, min(c.Cost+o.Cost, c.capacity()))
	c.limits |= o.limits
	return nil
}

// countsAs reports whether two rules count alike, whatever their max is.
func (r *Rule) countsAs(o *Rule) bool {
	return r == o || r.Algorithm == o.Algorithm && r.Storage == o.Storage && r.Window == o.Window && r.Resolution == o.Resolution &&
		r.Buckets == o.Buckets && r.Burst == o.Burst && r.queues() == o.queues() && r.Block == o.Block && r.Hold == o.Hold && r.Lease == o.Lease
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
		r.call[0].Charges[i].pass()
	}
}

// pass is the result of a charge that nobody makes.
func (c *Charge) pass() { c.Result, c.Err = Result{Allowed: true, Remaining: c.capacity()}, nil }

// chargeOf returns the charge of which the i-th limit of the call is the first, or nil.
func (r *request) chargeOf(i int) *Charge {
	for j := range r.charges {
		if c := &r.charges[j]; bits.TrailingZeros8(c.limits) == i {
			return c
		}
	}
	return nil
}
