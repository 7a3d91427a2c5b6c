package redis

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A waiter is one caller's share of a batch. It owns copies of the caller's
// charges, since the caller may give up while they are under way.
type waiter struct {
	// Calls are the caller's calls. Their results hold once Do or Wait has
	// returned nil, until Free.
	Calls []terms.Call

	state atomic.Uint32
	lazy  bool // the caller does not watch its context until it is woken
	late  bool // the caller was told that its time is over, and leaves the waiter behind
	err   error
	done  chan struct{} // receives a value when there is something to see in state

	groupKey
	charges    []terms.Charge // of all calls
	keys       []byte         // of all charges
	work       int64          // see terms.Charge.Work
	arrived    time.Duration  // when its caller did
	due        time.Duration  // when its caller's time is over
	permission permission
	inline     bool // its caller may send a batch by itself
	lingers    bool // it has waited for as long as the batcher's linger

	returned  terms.Returned // of a return, for which no caller waits
	place     uint64         // in the order of all arrivals
	idleUntil time.Duration  // of a return: until when it begins no batch; 0: it does
	hurries   bool           // it waits no longer for returns under way

	// The memory of most waiters stands together: other processors read it.
	call   [1]terms.Call
	charge [1]terms.Charge
	key    [64]byte
}

// The states of a waiter.
const (
	pending = iota // the caller has been told nothing and has not given up
	claimed        // the caller is about to be told, or has given up
	left           // the caller has given up since its context has ended, and goes nowhere
	finished
)

var waiters = newWaiters()

// ForgetWaiters forgets those that are free: their channels belong to the bubble of a test that is over.
func ForgetWaiters() { waiters = newWaiters() }

func newWaiters() *sync.Pool {
	return &sync.Pool{New: func() any {
		w := &waiter{done: make(chan struct{}, 1)}
		w.Calls, w.charges, w.keys = w.call[:0], w.charge[:0], w.key[:0]
		return w
	}}
}

// waiterOf returns a waiter with copies of calls, whose keys all lie in a slot, for a caller that
// arrived at an instant. They are so much work, see terms.Fit.
func waiterOf(op script.Operation, slot int, calls []terms.Call, work int64, arrived time.Duration) *waiter {
	w := waiters.Get().(*waiter)
	w.state.Store(pending)
	w.op, w.slot, w.work, w.arrived, w.err, w.late = op, slot, work, arrived, nil, false
	w.returned, w.idleUntil, w.inline, w.lingers, w.hurries = nil, 0, false, false, false
	w.Calls, w.charges, w.keys = w.Calls[:0], w.charges[:0], w.keys[:0]
	for i := range calls {
		w.Calls = append(w.Calls, terms.Call{Again: calls[i].Again})
		w.charges = append(w.charges, calls[i].Charges...)
		for j := range calls[i].Charges {
			w.keys = append(append(w.keys, calls[i].Charges[j].Key...), calls[i].Charges[j].Tenant...)
		}
	}
	// Only now do charges and keys stay where they are.
	charges, keys := w.charges, w.keys
	for i := range calls {
		n := len(calls[i].Charges)
		w.Calls[i].Charges = charges[:n:n]
		for j := range n {
			size := len(charges[j].Key)
			charges[j].Key, keys = keys[:size:size], keys[size:]
			if size = len(charges[j].Tenant); size > 0 {
				charges[j].Tenant, keys = keys[:size:size], keys[size:]
			}
		}
		charges = charges[n:]
	}
	return w
}

// copyResults copies the results of a waiter to the calls that it was made of, and frees it.
func (w *waiter) copyResults(calls []terms.Call) {
	for i := range calls {
		calls[i].Copy(&w.Calls[i])
	}
	w.Free()
}

// Free gives back a waiter whose results are not needed any more.
func (w *waiter) Free() { waiters.Put(w) }

// finish tells the caller what became of its calls, and reports whether it still
// wants to know.
func (w *waiter) finish(err error) bool {
	told := w.state.CompareAndSwap(pending, claimed)
	if told {
		w.tell(err)
	}
	return told
}

// finishLate is finish for a caller whose time is over.
func (w *waiter) finishLate(err error) bool {
	told := w.state.CompareAndSwap(pending, claimed)
	if told {
		w.late = true
		w.tell(err)
	}
	return told
}

// tell lets the caller of a claimed waiter go on.
func (w *waiter) tell(err error) {
	w.err = err
	w.state.Store(finished)
	w.wake()
}

// unwanted appends a call for each charge that has to be given back because the caller has given
// up: all of a caller whose context has ended; and of one whose time was over, and whom a policy
// may have admitted, permits and reservations, which nobody would renew, and what limits in
// shadow mode have counted, since the caller takes these for undecided. A place in line goes too that
// a call has got whose context has ended, unless more calls of its process waited then.
func (w *waiter) unwanted(calls []terms.Call) []terms.Call {
	all := w.state.Load() == left
	for i := range w.Calls {
		for j := range w.Calls[i].Charges {
			c := &w.Calls[i].Charges[j]
			charged, stands := c.At != 0, w.op == script.Take && c.Is(algorithm.Lends) && c.Param > 0 && !c.Allowed
			if (charged && (all || c.Lapses() || c.Shadow) || all && stands) && w.Calls[i].Err == nil {
				calls = append(calls, terms.Call{Charges: []terms.Charge{*c}})
			}
		}
	}
	return calls
}

// wake has the caller look at the state. A caller may be woken although there is nothing to
// see, also by what was meant for one that had the waiter before.
func (w *waiter) wake() {
	select {
	case w.done <- struct{}{}:
	default: // it is about to look
	}
}

// wait returns when the caller is told or when ctx ends. If the caller gives up the waiter is
// not freed, since its batch may still write to it.
func (w *waiter) wait(ctx context.Context, b *breaker) error {
	end := ctx.Done()
	if end == nil || w.lazy {
		<-w.done
	}
	for w.state.Load() != finished {
		select {
		case <-w.done:
		case <-end:
			if w.state.CompareAndSwap(pending, left) {
				b.Cancel(w.permission)
				return ctx.Err()
			}
			end = nil // it is being told
		}
	}
	err := w.err
	if err != nil && !w.late {
		w.Free()
	}
	return err
}

// occupies reports whether what is asked about a waiter's keys later has to wait for it.
func (w *waiter) occupies() bool { return w.returned != nil || w.op == script.Renew }
