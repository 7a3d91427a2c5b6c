package terms

import "context"

// A Store keeps the counts of limits and decides calls.
//
// A Store must be safe for concurrent use, must not keep the slices that it is
// given after it has returned, and must give up when the context ends.
type Store interface {
	// Take decides each call: all its charges are made, or none is, in the
	// order of calls when they name the same key. It fills in the Result of
	// every charge of the calls whose Err it leaves nil.
	//
	// The error is non-nil if no call was decided for sure.
	Take(ctx context.Context, calls []Call) error

	// Peek does what Take does and charges nothing: each call gets the result
	// that it would get if it alone arrived now.
	Peek(ctx context.Context, calls []Call) error

	// Settle makes each charge, which was made at the time At and has the Mark of
	// its Result, one that is Cost events more than the Charged ones it was made for, or
	// less if Cost is below 0. The difference is then given back, up to what is still
	// counted of charges made to Key at that time, in the same bucket of a counter, and
	// nothing of what was charged before Key was last removed; of a bucket up to what has not
	// drained of this one: no limit ever has more left than its max. In a queue it
	// becomes a gap if a later charge is in line. If Cost is above 0, that is charged
	// as of now, however little room there is, or up to the room where the limit
	// [rule.DebtForgive]. The Mark of a reservation says what is known of it: [Lasted], [Again] or
	// nothing. A reservation that has lapsed is charged as of now, at all that the call
	// cost.
	//
	// The error is non-nil if none was settled for sure. A charge has an Err if that
	// alone was not settled.
	Settle(ctx context.Context, charges []Charge) error

	// Renew keeps the permits that were charged to the key of each call at the
	// time At from lapsing for another window. It writes them again if they have lapsed
	// or are gone, whatever Max says: the calls that hold them do run. It sets At to 0
	// if they were reset since, and renews them no more. Of a reservation At becomes the
	// number by which the store knows it from then on, or 0 if its period is over.
	//
	// The error is non-nil if nothing was renewed for sure. A call has one charge,
	// and an Err if that alone was not renewed.
	Renew(ctx context.Context, calls []Call) error

	// Hold blocks the key of each charge for everybody for At microseconds from now on,
	// unless a block does for longer. At 0 it ends any block. A charge that alone could
	// not be held has an Err.
	Hold(ctx context.Context, charges []Charge) error

	// Reset forgets the keys of the charges and no other. Permits that are held
	// now are not written again by Renew.
	Reset(ctx context.Context, charges []Charge) error
}

// A Returner is a Store that settles charges nobody waits for.
type Returner interface {
	// Return settles a charge as Settle does, ahead of all that is asked about its key from
	// now on: in one request with that, or soon by itself. It returns at once, and calls done
	// once when the charge is settled, or was not. It returns false, and has done nothing, if
	// that cannot be now.
	Return(c *Charge, done Returned) bool
}

// A Returned is told the error of a charge that was to be settled. It must not wait.
type Returned interface{ Done(err error) }

// Unheard is a Returned of what nobody needs to hear.
type Unheard struct{}

func (Unheard) Done(error) {}

// Marks of a reservation that is settled.
const (
	// Lasted says that it has lasted to the end of its period, and was used there.
	Lasted = 1
	// Again says that this may have been done before. What is not there is left alone.
	Again = 2
)
