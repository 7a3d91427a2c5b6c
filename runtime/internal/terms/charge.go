package terms

import (
	"errors"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/rule"
)

// A Call is what one caller wants to be charged: all its charges, of which there are some, or none. Its
// keys differ from each other.
type Call struct {
	// Charges are the call's. Those in shadow mode stand behind the others.
	Charges []Charge
	// Err says why this call alone could not be decided.
	Err error
	// Arrived is the instant at which the call reached the limiter; 0: unknown.
	Arrived time.Duration
	// Again marks a call that has waited: what was refused before says nothing about
	// it, as long as Redis answers.
	Again bool
	// Previous is the number, from 1 on, of the last call before this one in a batch that
	// has the key of its first charge; 0: there is none.
	Previous int
}

// Copy copies what was found about a call with equal charges.
func (c *Call) Copy(found *Call) {
	c.Err = found.Err
	for j := range c.Charges {
		c.Charges[j].Result, c.Charges[j].Err = found.Charges[j].Result, found.Charges[j].Err
	}
}

// Enforced returns how many charges of the call come before the first one in shadow
// mode.
func (c *Call) Enforced() int {
	for i := range c.Charges {
		if c.Charges[i].Shadow {
			return i
		}
	}
	return len(c.Charges)
}

// Admitted reports whether every limit that may refuse a call with some charges has room.
func Admitted(charges []Charge) bool {
	for i := range charges {
		if !charges[i].Allowed && !charges[i].Shadow {
			return false
		}
	}
	return true
}

// ArrivalOf returns when calls arrived at the limiter. For calls that a store
// was given directly that is now.
func ArrivalOf(calls []Call) time.Duration {
	if len(calls) > 0 && calls[0].Arrived != 0 {
		return calls[0].Arrived
	}
	return clock.Now()
}

// A Charge is one limit of a call at one try: what a store is asked, and what it found. Two other types
// have the name. A decide.Charge is what all tries of a call have in common; each try makes a Charge of it.
// A rawstore.Charge is one in the words of rules, by which tests ask a store.
type Charge struct {
	Terms
	Tenancy
	Key []byte
	// Cost is how many events the call stands for. To settle, it is by how many
	// the charge at At is to grow, or to shrink if it is below 0. To hold, At is for how
	// long.
	Cost int64
	// Charged is how many events were charged at At. Only to settle uses it.
	Charged int64
	// Wait is how long the call may still wait for room. A queue is told by its Terms.
	Wait time.Duration
	// Deferred marks a charge beside a queue. To take makes it if the call's turn is now.
	// Otherwise it refuses the call only if it would at its turn, and is made then.
	Deferred bool
	// Label names the charge's rule. It may be nil.
	Label *Label
	Result
	// Err says why the charge was not decided. The result then means nothing. A store
	// sets it for a charge in shadow mode whose call it has decided as if the charge was
	// not there.
	Err error
	// Source is who has decided the charge. Stores do not set it.
	Source rule.Source
	// Rechecks marks a charge that finds out whether a refusal still holds, see
	// package recall.
	Rechecks bool
}

// Everybody is the tenant of a hold, which no caller can be: it is for all of them.
const Everybody = "\x05"

// A Rank is a tenant's score, see shares.lua.
type Rank struct {
	Name  string
	Score float64
}

// A Tenancy says for whom a bucket that is divided is charged. It is no part of Terms, of which there are few.
type Tenancy struct {
	Tenant []byte
	Weight int64 // of the tenant beside others
}

// How much work something is for Redis, in quarters of a microsecond on an idle
// machine, and rather too many of them.
const (
	// Work is that of a charge, and of every script of a batch after the first.
	Work = algorithm.Work
	// MaxWork is that of a batch, during which nobody else can use Redis: a
	// millisecond, or 128 charges.
	MaxWork = 128 * Work
)

// Work returns how much work the charge is for Redis. A charge to a log writes
// as many events as it costs.
func (c *Charge) Work() int64 {
	return Work + algorithm.Rows[c.Algorithm].EventWork*max(c.Cost-1, -c.Cost-1, 0)
}

// Fit returns how many of some calls, from the first on, are no more than MaxWork
// together, and how much: the first in any case.
func Fit(calls []Call) (n int, work int64) {
	for n < len(calls) {
		one := int64(0)
		for i := range calls[n].Charges {
			one += calls[n].Charges[i].Work()
		}
		if n > 0 && work+one > MaxWork {
			break
		}
		n, work = n+1, work+one
	}
	return n, work
}

// A Result is what a store found about one charge.
type Result struct {
	// Allowed reports whether this limit had room. The charge was made if this
	// limit had, and every other of the call that is not in shadow mode.
	Allowed bool
	// Remaining is how much is left of the limit, after the charge if it was
	// made.
	Remaining int64
	// RetryAfter is 0 if the charge is allowed, and otherwise the time until
	// it would be if no other call arrived.
	RetryAfter time.Duration
	// MoreAfter is the time until there is room for one more, of a charge to a log or a
	// counter that has left nothing; otherwise, and where it is not known, 0.
	MoreAfter time.Duration
	// ResetAfter is the time until the limit is whole again if no other call
	// arrived.
	ResetAfter time.Duration
	// Delay is how long the caller must wait for its turn in a Queue; of Permits that were
	// refused to a call that may wait, how long until it is to ask again.
	Delay time.Duration
	// At is the time that the charge counts as, by the store's clock in
	// microseconds since 1970: its own, that of its time slice, or in a queue the end
	// of its turn; and for permits a number of about that time which no others of the
	// key have. It is 0 if no charge was made.
	At int64
	// Past is what is kept of former periods. To peek fills it in, of Terms with a Keep.
	Past *Past
	// Mark is what a bucket must know besides At to tell how much of the charge has
	// drained: 0 if nothing had since the bucket was last empty, and more from then
	// on; in a queue the time of the charge. It is 0 for other algorithms.
	Mark int64
	// Recalled reports that an earlier refusal was repeated, see package refusals.
	Recalled bool
	// Blocked reports that a block refuses the charge. To take begins it where a limit
	// that enforces has no room for a charge; to peek begins none. RetryAfter is then
	// its rest or, if the limit has no room for longer, the time until it has;
	// Remaining is 0.
	Blocked bool
	// Behind reports, of a refusal by a limit that is divided, that its tenant has used less than
	// the heaviest. It may then have room before RetryAfter.
	Behind bool
}

// AwaitsTurn reports whether a charge is made at its call's turn, which comes after a time. If it is,
// and does not refuse the call, it is allowed. Permits may be back by then.
func (c *Charge) AwaitsTurn(turn time.Duration) bool {
	if !c.Deferred || turn <= 0 {
		return false
	}
	if c.Is(algorithm.Lends) || c.RetryAfter <= turn {
		c.Allowed, c.RetryAfter, c.Behind = true, 0, false
	}
	return true
}

// Turn returns after how long the turn of a call with some charges comes.
func Turn(charges []Charge) (turn time.Duration) {
	for i := range charges {
		if c := &charges[i]; c.Allowed && !c.Shadow {
			turn = max(turn, c.Delay)
		}
	}
	return turn
}

// GiveBack makes a charge that was made one that gives all of it back.
func (c *Charge) GiveBack() { c.Charged, c.Cost = c.Cost, -c.Cost }

// Errors returns the errors of charges that differ as one.
func Errors(charges []Charge) error {
	var errs []error
	seen := make(map[string]bool)
	for i := range charges {
		if err := charges[i].Err; err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
