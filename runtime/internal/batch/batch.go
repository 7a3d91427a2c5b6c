package batch

import (
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

const (
	// MaxCalls is how many calls a batch takes. A call is a few microseconds'
	// work for Redis, which nobody else can use meanwhile.
	MaxCalls = 128
	// maxWaiters is how many callers a batch takes, however little work they
	// are: equal calls on one key are next to none.
	maxWaiters = 1024
)

// A batch is what goes to Redis together: one script, or on a cluster one for
// each slot.
type batch struct {
	// The batcher guards these while the batch is under way.
	waiters []*Waiter
	sent    time.Duration // when it was sent; 0: it was not yet
	clock   int64         // the server's latest time that was known then
	overdue bool          // it has had no answer within the timeout
	yielded bool          // others do not wait for it to return

	denied []*Waiter // see dropDenied

	op     script.Operation
	permit breaker.Permit // the newest of the waiters'
	room   int64          // for more work
	groups []*group
	spare  []*group
	at     map[int]*group // by slot
	send   []*script.Execution
	last   index
}

var batches = sync.Pool{New: func() any { return &batch{at: make(map[int]*group)} }}

// load makes groups of the waiters from the front and returns how many fit: all
// of a batch is one operation, and no more work than MaxCalls calls of a small
// cost. The first waiter always fits. Callers that have given up stay behind.
func (b *batch) load() int {
	b.unload()
	taken := len(b.waiters)
	for i, w := range b.waiters {
		if w.state.Load() == pending && !b.take(w) {
			taken = i
			break
		}
	}
	for _, g := range b.groups {
		g.fill(b.op)
		b.send = append(b.send, g.executions[0])
	}
	return taken
}

func (b *batch) take(w *Waiter) bool {
	room := b.room
	if len(b.groups) == 0 {
		b.op, room = w.op, w.work
	} else if w.op != b.op {
		return false
	}
	g := b.groupAt(w.slot)
	if g == nil {
		if len(b.groups) > 0 {
			if room -= terms.Work; w.work > room {
				return false
			}
			b.room -= terms.Work
		}
		g = b.newGroup(w.slot)
	}
	work, ok := g.add(w, &b.last, room)
	if ok {
		b.room -= work
		b.permit = max(b.permit, w.permit)
	}
	return ok
}

// groupAt returns the group of a slot, or nil.
func (b *batch) groupAt(slot int) *group {
	if len(b.groups) == 1 && b.groups[0].slot == slot {
		return b.groups[0]
	}
	return b.at[slot]
}

func (b *batch) newGroup(slot int) *group {
	var g *group
	if n := len(b.spare); n > 0 {
		g, b.spare = b.spare[n-1], b.spare[:n-1]
	} else {
		g = new(group)
	}
	g.slot = slot
	b.groups = append(b.groups, g)
	b.at[slot] = g
	return g
}

// err returns why nobody in the batch got an answer, or nil.
func (b *batch) err() error {
	for _, g := range b.groups {
		if g.err() == nil {
			return nil
		}
	}
	return b.groups[0].err()
}

// unload lets go of everybody in the groups.
func (b *batch) unload() {
	for _, g := range b.groups {
		g.clear()
	}
	b.spare = append(b.spare, b.groups...)
	clear(b.groups)
	clear(b.at)
	clear(b.send)
	b.last.clear()
	b.groups, b.send, b.room, b.permit = b.groups[:0], b.send[:0], MaxCalls*terms.Work, 0
}

// free gives the batch back.
func (b *batch) free() {
	b.unload()
	batches.Put(b)
}

// age returns how long ago the batch was sent.
func (b *batch) age() time.Duration { return clock.Now() - b.sent }
