package runtime

import (
	"bytes"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/receipts"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A request is the memory that one call needs on its way to the store and
// back. It is pooled, so that a call allocates nothing.
type request struct {
	decide.Call
	keys     []byte
	peeking  bool // nothing is decided
	waiting  waiting
	receipts receipts.Book
	terms    *overrideSet // in force when the charges were made, or nil
}

var requests = sync.Pool{New: func() any { return new(request) }}

func newRequest() *request { return requests.Get().(*request) }

func (r *request) free() {
	r.leaveLine(false)
	r.clear()
	r.peeking, r.Again, r.terms = false, false, nil
	if cap(r.keys) <= 16*terms.MaxKey {
		requests.Put(r)
	}
}

// clear takes the charges away.
func (r *request) clear() {
	again := r.Again
	r.Call.Clear()
	r.keys, r.Again = r.keys[:0], again
}

// leaveLine takes the call out of its line. If ask is true the next one asks the
// store at once.
func (r *request) leaveLine(ask bool) {
	r.Turn.Leave(ask)
	r.Turn = nil
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
	return nil
}

// adopt makes the charge of a lone limit, of which is known already that it is plain, and
// what was found about it on its caller's stack.
func (r *request) adopt(p *plan.Plan, limit *Limit, try *decide.Try, rechecks bool) {
	r.keys = p.AppendKey(r.keys, limit.key.bytes())
	r.Charges = append(r.Charges, decide.Charge{Plan: p, Key: r.keys, Cost: limit.cost, Limits: 1, Own: limit.max})
	r.Begin(context.Background(), time.Time{}, try.Arrived) // which does not wait
	r.Tries[0].Rechecks = rechecks
}

// silent reports whether nobody wants to hear what is wrong with the limits: nothing
// is decided, or it was said before.
func (r *request) silent() bool { return r.peeking || r.Again }

// add adds the charge for a limit, unless it needs no decision.
func (r *request) add(ctx context.Context, l *Limiter, limit *Limit, index uint8) error {
	p, on, err := l.planOf(limit)
	if err != nil {
		if p != nil && p.Terms.Shadow && !r.peeking {
			r.failed(ctx, l, p, err)
			return nil
		}
		return err
	}
	if !on || limit.cost == 0 {
		return nil
	}
	if p.Terms.Shadow && !r.peeking {
		if err := l.engine.Resting(p, instant()); err != nil {
			r.failed(ctx, l, p, err)
			return nil
		}
	}
	if err := limit.key.invalid(); err != nil {
		r.failed(ctx, l, p, err)
		switch p.Fail {
		case plan.Open:
			return nil
		case plan.Closed:
			return fmt.Errorf("rule %q: %w", p.Name, err)
		}
	}
	charge := decide.Charge{Plan: p, Cost: limit.cost, Limits: 1 << index, Own: limit.max, EmptyPart: limit.key.hasEmpty()}
	if charge.EmptyPart && !r.silent() {
		l.events.log.emptyPart(ruleOf(p))
	}
	if p.Terms.Shadow && p.Unsatisfiable(limit.cost) {
		if !r.silent() {
			l.events.unsatisfiable(ctx, &charge)
			var never [1]terms.Charge
			never[0].RetryAfter = Never
			exceed(ctx, []decide.Charge{charge}, never[:])
		}
		return nil
	}
	start := len(r.keys)
	r.keys = p.AppendKey(r.keys, limit.key.bytes())
	charge.Key = r.keys[start:len(r.keys):len(r.keys)]
	return r.place(l, charge)
}

// failed reports why a limit is left out.
func (r *request) failed(ctx context.Context, l *Limiter, p *plan.Plan, err error) {
	if !r.silent() {
		l.events.failure(ctx, ruleOf(p), policyOf(p.Fail), err)
	}
}

// place puts a charge in its place: behind all others, if its limit is in shadow
// mode, and else before those that are. Of charges on one key there is one: a shadow
// limit is left out, and others are charged together.
func (r *request) place(l *Limiter, c decide.Charge) error {
	at := 0 // behind the last charge that is not in shadow mode
	for i := 0; i < len(r.Charges); i++ {
		o := &r.Charges[i]
		switch same := bytes.Equal(o.Key, c.Key); {
		case same && c.Plan.Terms.Shadow:
			l.events.log.sharedKey(ruleOf(c.Plan), ruleOf(o.Plan))
			return nil
		case same && o.Plan.Terms.Shadow:
			l.events.log.sharedKey(ruleOf(o.Plan), ruleOf(c.Plan))
			r.Charges = slices.Delete(r.Charges, i, i+1)
			i--
			continue
		case same:
			return l.join(o, &c)
		}
		if !o.Plan.Terms.Shadow || c.Plan.Terms.Shadow {
			at = i + 1
		}
	}
	r.Charges = slices.Insert(r.Charges, at, c)
	return nil
}

// join makes a charge that of another one's limit, too. Both have one key. It then
// costs what both do, but no more than the limit could ever admit: that a call names
// a key twice makes it none that is never admitted. The lower max holds.
func (l *Limiter) join(c, o *decide.Charge) error {
	first, other := ruleOf(c.Plan), ruleOf(o.Plan)
	if !first.countsAs(other) {
		return fmt.Errorf("%w: rules %q and %q of one call have the same prefix and key, and count in different ways: give them prefixes of their own", ErrInvalidLimit, first.Name, other.Name)
	}
	if o.Plan.Max < c.Plan.Max {
		c.Plan = l.plan(first, o.Plan.Max)
	}
	c.Cost = max(c.Cost, o.Cost, min(c.Cost+o.Cost, c.Plan.Capacity))
	c.Limits |= o.Limits
	return nil
}

// countsAs reports whether two rules count alike, whatever their max is.
func (r *Rule) countsAs(o *Rule) bool {
	return r == o || r.Algorithm == o.Algorithm && r.Storage == o.Storage && r.Window == o.Window && r.Resolution == o.Resolution &&
		r.Buckets == o.Buckets && r.Burst == o.Burst && r.queues() == o.queues() && r.Block == o.Block && r.Hold == o.Hold && r.Lease == o.Lease
}

// chargeOf returns the place of the charge of which the i-th limit of the call is the
// first, or -1.
func (r *request) chargeOf(i int) int {
	for j := range r.Charges {
		if bits.TrailingZeros8(r.Charges[j].Limits) == i {
			return j
		}
	}
	return -1
}
