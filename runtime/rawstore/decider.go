package rawstore

import (
	"context"
	"math/bits"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A Decider decides calls by the engine of a limiter, in memory and at the times that it is told.
// Nobody waits there: it says for how long a call would. It is for one goroutine.
type Decider struct {
	// Now is the time, in microseconds since 1970.
	Now int64
	// Lost is how often a key was forgotten for want of room, while it still counted.
	Lost int64
	// Defers says that charges beside a queue are left for Turn, unless a call's turn is now.
	Defers bool

	store  *memstate.Store
	engine decide.Engine
	call   decide.Call
	calls  [1]terms.Call
	one    [1]terms.Charge
}

// NewDecider returns a decider that keeps so many keys.
func NewDecider(keys int) *Decider {
	d := &Decider{store: memstate.NewStore(keys)}
	d.store.Clock = func() int64 { return d.Now }
	d.store.Lost = func(bool) { d.Lost++ }
	d.engine.Store, d.engine.InProcess = d.store, d.store
	return d
}

// Terms are what a decider is asked by: what a rule means at one max.
type Terms struct{ plan *plan.Plan }

// NewTerms returns the terms of a rule at a max. Start begins its keys: rules with one start share
// their counts. The error says what is wrong with the rule.
func NewTerms(r *runtime.Rule, max int64, start string) (Terms, error) {
	if err := rule.Engine.CheckCall(r, max, 1); err != nil {
		return Terms{}, err
	}
	p := &plan.Plan{Key: plan.Key{Rule: r, Max: max}, Label: terms.Label{Name: r.Name, Start: start}, Declared: r,
		Numbers: plan.NumbersOf(r)}
	return Terms{p.Complete(1)}, nil
}

// Lasts returns for how long a charge lasts that is not renewed, in microseconds; 0: for good.
// While its call runs a limiter renews it [spec.Renewals] times in that.
func (t Terms) Lasts() int64 {
	if !t.plan.Terms.Lapses() {
		return 0
	}
	return t.plan.Terms.Lasts().Microseconds()
}

// Reserved reports whether what lapses is a reservation, which ends with its period.
func (t Terms) Reserved() bool { return t.plan.Terms.Reserve > 0 }

// Divided reports whether shares divide the limit.
func (t Terms) Divided() bool { return t.plan.Divided() }

// Shadow reports whether the limit refuses nobody.
func (t Terms) Shadow() bool { return t.plan.Terms.Shadow }

// A Request is one limit of a call.
type Request struct {
	Terms
	Parts         []byte // of the key
	Cost          int64
	Wait          time.Duration // for which the call may wait
	terms.Tenancy               // of a limit that is divided
	terms.Result
	// Verdict is as in an event for observers.
	Verdict observe.Verdict
	// Due says that the charge is to be made by Turn.
	Due bool
}

// Take decides a call, and fills in what was found about each of its limits. Those in shadow mode
// stand behind the others. It returns how long the call has to wait for its turn, if it is
// admitted; if it is not, how long until it should be tried again, 0 where nobody knows,
// or below 0 if it is refused.
func (d *Decider) Take(requests []Request) (wait time.Duration) {
	c := d.begin(requests, false)
	for i := range requests {
		if requests[i].plan.Queues() {
			c.Tries[i].More = c.Tries[i].Wait.Microseconds()
		}
	}
	if d.Defers {
		c.Defer()
	}
	if !d.engine.Known(context.Background(), c) {
		if err := d.engine.Ask(context.Background(), c); err != nil {
			return -1 // of a rule that fails closed, and a store in memory does not fail
		}
	}
	return d.end(requests)
}

// Turn makes the charges that are due of a call that was admitted, at its turn. It returns what Take
// does. A call that should be tried again in a known time needs a new place in its queue.
func (d *Decider) Turn(requests []Request) (wait time.Duration) {
	if err := d.engine.Ask(context.Background(), d.begin(requests, true)); err != nil {
		return -1
	}
	return d.end(requests)
}

// begin begins a try of all charges of a call, or of those that are due.
func (d *Decider) begin(requests []Request, due bool) *decide.Call {
	c := &d.call
	c.Clear()
	for i := range requests {
		if r := &requests[i]; r.Due || !due {
			c.Charges = append(c.Charges,
				decide.Charge{Plan: r.plan, Key: c.Key(r.plan, r.Parts), Cost: r.Cost, Tenancy: r.Tenancy, Limits: 1 << i})
		}
	}
	c.Begin(context.Background(), 0, 1)
	for i := range c.Tries {
		c.Tries[i].Wait = requests[bits.TrailingZeros8(c.Charges[i].Limits)].Wait
	}
	return c
}

// end fills in what a try has found, and returns what Take does.
func (d *Decider) end(requests []Request) (wait time.Duration) {
	c := (*decide.Tried)(&d.call)
	admitted := terms.Admitted(c.Tries)
	for i := range c.Tries {
		r := &requests[bits.TrailingZeros8(c.Charges[i].Limits)]
		r.Result, r.Due = c.Tries[i].Result, admitted && c.Due(i)
	}
	for i := range requests {
		r := &requests[i]
		r.Verdict = observe.VerdictAdmitted
		if !r.Allowed && r.Shadow() {
			r.Verdict = observe.VerdictShadowRefused
		} else if !r.Allowed {
			r.Verdict = observe.VerdictRefused
		} else if !admitted {
			r.Verdict = observe.VerdictNotCharged
		}
	}
	if admitted {
		return c.Delay()
	}
	if pause, ok := c.Pause(); ok {
		return pause
	}
	return -1
}

// Settle settles a charge at a cost. Lasted says of a reservation that it has lasted to the end of
// its period.
func (d *Decider) Settle(r *Request, charged, settled int64, lasted bool) {
	c := &d.one[0]
	*c = r.plan.Correction(r.key(), charged, charged-settled, r.At, r.Mark)
	c.Tenancy = r.Tenancy
	if lasted {
		c.Mark = terms.Lasted
	}
	_ = d.store.Settle(context.Background(), d.one[:])
}

// Renew renews a charge that lapses, and reports whether it is still there.
func (d *Decider) Renew(r *Request) bool {
	d.one[0] = terms.Charge{}
	r.plan.Charge(&d.one[0], r.key(), r.Cost)
	d.one[0].At = r.At
	d.calls[0] = terms.Call{Charges: d.one[:]}
	_ = d.store.Renew(context.Background(), d.calls[:])
	if d.one[0].At == 0 {
		return false
	}
	r.At = d.one[0].At
	return true
}

func (r *Request) key() []byte { return r.plan.AppendKey(nil, r.Parts) }
