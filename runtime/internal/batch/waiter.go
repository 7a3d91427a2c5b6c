package batch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Waiter is one caller's share of a batch. It owns copies of the caller's
// charges, since the caller may give up while they are under way.
type Waiter struct {
	// Calls are the caller's calls. Their results hold once Do or Wait has
	// returned nil, until Free.
	Calls []terms.Call

	state atomic.Uint32
	lazy  bool // the caller does not watch its context until it is woken
	late  bool // the caller was told that its time is over
	err   error
	done  chan struct{} // receives a value when there is something to see in state

	groupKey
	charges    []terms.Charge // of all calls
	ended      int            // how many of them belong to Calls
	keys       []byte         // of all charges
	work       int64          // see terms.Charge.Work
	arrived    time.Duration  // when its caller did
	due        time.Duration  // when its caller's time is over
	permission breaker.Permission
	lingers    bool // it has waited for as long as the batcher's linger

	returned terms.Returned // of a return, for which no caller waits
	place    uint64         // in the order of all arrivals
	rests    time.Duration  // of a return: until when it begins no batch; 0: it does
	hurries  bool           // it waits no longer for returns under way

	// The memory of most waiters stands together: other processors read it.
	call   [1]terms.Call
	charge [1]terms.Charge
	key    [64]byte
}

// The states of a waiter.
const (
	pending = iota // the caller has been told nothing and has not given up
	claimed        // the caller is about to be told, or has given up
	finished
)

var waiters = newWaiters()

func newWaiters() *sync.Pool {
	return &sync.Pool{New: func() any {
		w := &Waiter{done: make(chan struct{}, 1)}
		w.Calls, w.charges, w.keys = w.call[:0], w.charge[:0], w.key[:0]
		return w
	}}
}

// NewWaiter returns a waiter without calls, for a caller that arrived at an
// instant. Charge, SetKey and EndCall add calls, and Seal ends that.
func NewWaiter(op script.Operation, arrived time.Duration) *Waiter {
	w := waiters.Get().(*Waiter)
	w.state.Store(pending)
	w.op, w.slot, w.work, w.arrived, w.err, w.lingers, w.late, w.ended = op, 0, 0, arrived, nil, false, false, 0
	w.returned, w.rests, w.hurries = nil, 0, false
	w.Calls, w.charges, w.keys = w.Calls[:0], w.charges[:0], w.keys[:0]
	return w
}

// Charge adds a charge and returns it, to be filled in, but for its key.
func (w *Waiter) Charge() *terms.Charge {
	w.charges = append(w.charges, terms.Charge{})
	return &w.charges[len(w.charges)-1]
}

// SetKey copies the key of the charge that was added last, once that is filled
// in.
func (w *Waiter) SetKey(key []byte) {
	c := &w.charges[len(w.charges)-1]
	c.Key = key // of which Seal reads the length
	w.keys = append(w.keys, key...)
	w.work += c.Work()
}

// EndCall makes a call of the charges that were added since the last one.
func (w *Waiter) EndCall(again bool) {
	w.Calls = append(w.Calls, terms.Call{Charges: w.charges[w.ended:], Again: again})
	w.ended = len(w.charges)
}

// Seal lets the calls and keys point to where they are now: they may have moved
// when others were added.
func (w *Waiter) Seal() {
	charges, keys := w.charges, w.keys
	for i := range w.Calls {
		n := len(w.Calls[i].Charges)
		w.Calls[i].Charges = charges[:n:n]
		for j := range n {
			size := len(charges[j].Key)
			charges[j].Key, keys = keys[:size:size], keys[size:]
		}
		charges = charges[n:]
	}
}

// SetSlot says that all keys lie in a slot, on a cluster.
func (w *Waiter) SetSlot(slot int) { w.slot = slot }

// Free gives back a waiter whose results are not needed any more.
func (w *Waiter) Free() { waiters.Put(w) }

// finish tells the caller what became of its calls, and reports whether it still
// wants to know.
func (w *Waiter) finish(err error, late bool) bool {
	if !w.state.CompareAndSwap(pending, claimed) {
		return false
	}
	w.err, w.late = err, late
	w.state.Store(finished)
	w.wake()
	return true
}

// held appends copies of what was charged for a caller who has given up, each as a call: what it
// would have held, and what limits in shadow mode have counted, which counts as undecided.
func (w *Waiter) held(calls []terms.Call) []terms.Call {
	for i := range w.Calls {
		for j := range w.Calls[i].Charges {
			if c := &w.Calls[i].Charges[j]; (c.Lapses() || c.Shadow) && c.At != 0 && w.Calls[i].Err == nil {
				calls = append(calls, terms.Call{Charges: []terms.Charge{*c}})
			}
		}
	}
	return calls
}

// wake has the caller look at the state. It may do so once too often, and
// perhaps the next caller that has the waiter.
func (w *Waiter) wake() {
	select {
	case w.done <- struct{}{}:
	default: // it is about to look
	}
}

// wait returns when the caller is told or when ctx ends. A caller that has not
// waited for its batch leaves the waiter behind, which the batch may still write
// to.
func (w *Waiter) wait(ctx context.Context, b *breaker.Breaker) error {
	end := ctx.Done()
	if end == nil || w.lazy {
		<-w.done
	}
	for w.state.Load() != finished {
		select {
		case <-w.done:
		case <-end:
			if w.state.CompareAndSwap(pending, claimed) {
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
