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
	op      string
	slot    int // of all keys; 0 if that does not matter
	calls   []Call
	charges []Charge      // of all calls
	keys    []byte        // of all charges
	work    int64         // see Charge.work
	came    time.Duration // when its caller did
	due     time.Duration // when its caller's time is over, see terminal.overdue

	pass pass        // the breaker's
	told atomic.Bool // whether it is settled what the caller is told
	late bool        // the caller was told that its time is over
	err  error
	done chan struct{} // receives one value when the caller is told
}

var tickets = sync.Pool{New: func() any { return &ticket{done: make(chan struct{}, 1)} }}

// newTicket returns a ticket for calls, whose keys lie in one slot.
func newTicket(op string, slot int, calls []Call) *ticket {
	t := tickets.Get().(*ticket)
	t.came = instantOf(calls)
	t.told.Store(false)
	t.op, t.slot, t.work, t.err = op, slot, 0, nil
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
	if !t.told.CompareAndSwap(false, true) {
		return false
	}
	t.err, t.late = err, late
	t.done <- struct{}{}
	return true
}

// wait returns when the caller is told, or is gone because ctx has ended, and
// fills in the results of calls. A caller that has not waited for its trip
// leaves the ticket behind, which the trip may still write to.
func (t *ticket) wait(ctx context.Context, calls []Call) (err error, gone bool) {
	if end := ctx.Done(); end == nil {
		<-t.done
	} else {
		select {
		case <-t.done:
		case <-end:
			if t.told.CompareAndSwap(false, true) {
				return ctx.Err(), true
			}
			<-t.done
		}
	}
	if err = t.err; err == nil {
		t.hand(calls)
	}
	if !t.late {
		tickets.Put(t)
	}
	return err, false
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
