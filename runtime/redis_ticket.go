package runtime

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A ticket is one caller's share of a trip. It owns copies of the caller's
// charges, since the caller may give up while they are under way.
type ticket struct {
	state atomic.Uint32 // see below
	blind bool          // the caller does not look at its context until it is stirred
	late  bool          // the caller was told that its time is over
	err   error
	done  chan struct{} // receives a value when there is something to see in state

	op      string
	slot    int // of all keys; 0 if that does not matter
	calls   []Call
	charges []Charge      // of all calls
	keys    []byte        // of all charges
	work    int64         // see Charge.work
	came    time.Duration // when its caller did
	due     time.Duration // when its caller's time is over, see terminal.overdue
	pass    pass          // the breaker's
	stirred bool          // the terminal's

	// What most callers need, next to each other: other processors read it.
	call   [1]Call
	charge [1]Charge
	key    [64]byte
}

// The states of a ticket.
const (
	open    = iota // nobody has told the caller anything, nor has it given up
	claimed        // somebody is about to tell it, or it has given up
	told
)

var tickets = sync.Pool{New: func() any {
	t := &ticket{done: make(chan struct{}, 1)}
	t.calls, t.charges, t.keys = t.call[:0], t.charge[:0], t.key[:0]
	return t
}}

// newTicket returns a ticket for calls, whose keys lie in one slot, of a caller
// that came at an instant.
func newTicket(op string, slot int, calls []Call, came time.Duration) *ticket {
	t := tickets.Get().(*ticket)
	t.state.Store(open)
	t.op, t.slot, t.work, t.came, t.err, t.stirred = op, slot, 0, came, nil, false
	t.calls, t.charges, t.keys = t.calls[:0], t.charges[:0], t.keys[:0]
	for i := range calls {
		t.charges = append(t.charges, calls[i].Charges...)
		for j := range calls[i].Charges {
			t.keys = append(t.keys, calls[i].Charges[j].Key...)
			t.work += calls[i].Charges[j].work()
		}
	}
	charges, keys := t.charges, t.keys
	for i := range calls {
		n := len(calls[i].Charges)
		t.calls = append(t.calls, Call{Charges: charges[:n:n]})
		for j := range n {
			size := len(charges[j].Key)
			charges[j].Key, keys = keys[:size:size], keys[size:]
		}
		charges = charges[n:]
	}
	return t
}

// tell tells the caller what became of its calls, and reports whether it still
// wants to know.
func (t *ticket) tell(err error, late bool) bool {
	if !t.state.CompareAndSwap(open, claimed) {
		return false
	}
	t.err, t.late = err, late
	t.state.Store(told)
	t.wake()
	return true
}

// wake has the caller look at the state. It may do so once too often, and
// perhaps as the next one who has the ticket.
func (t *ticket) wake() {
	select {
	case t.done <- struct{}{}:
	default: // it is about to look
	}
}

// wait returns when the caller is told, and fills in the results of calls, or
// when ctx ends, which the breaker is told. A caller that has not waited for its
// trip leaves the ticket behind, which the trip may still write to.
func (t *ticket) wait(ctx context.Context, calls []Call, b *breaker) error {
	end := ctx.Done()
	if end == nil || t.blind {
		<-t.done
	}
	for t.state.Load() != told {
		select {
		case <-t.done:
		case <-end:
			if t.state.CompareAndSwap(open, claimed) {
				b.dropped(t.pass)
				return ctx.Err()
			}
			end = nil // it is being told
		}
	}
	err := t.err
	if err == nil {
		t.hand(calls)
	}
	if !t.late {
		tickets.Put(t)
	}
	return err
}

// hand gives the caller what was found.
func (t *ticket) hand(calls []Call) {
	for i := range calls {
		calls[i].Err = t.calls[i].Err
		for j := range calls[i].Charges {
			calls[i].Charges[j].Result = t.calls[i].Charges[j].Result
		}
	}
}
