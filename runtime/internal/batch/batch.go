package batch

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// maxWaiters is how many callers a batch takes, however little work they are:
// equal calls on one key are next to none.
const maxWaiters = 1024

// A batch is what goes to Redis together: a script for each operation, and on a
// cluster for each slot.
type batch struct {
	// The batcher guards these while the batch is under way.
	waiters []*Waiter
	sent    time.Duration // when it was sent; 0: it was not yet
	clock   int64         // the server's latest time that was known then
	overdue bool          // it has had no answer within the timeout
	yielded bool          // others do not wait for it to return
	gathers bool          // see Batcher.gather

	denied []*Waiter // see dropDenied

	permission breaker.Permission // the newest of the waiters'
	room       int64              // for more work
	mixed      bool               // the groups are of several operations
	groups     []*group
	spare      []*group
	at         map[groupKey]*group
	send       []*script.Execution
	last       index
}

var batches = sync.Pool{New: func() any { return &batch{at: make(map[groupKey]*group)} }}

// load makes groups of the waiters from the front and returns how many fit: a batch
// is no more work than terms.MaxWork, but the first waiter always fits. Callers that
// have given up stay behind. What is given back comes before what is taken: a caller
// that did not wait for the one finds room for the other.
func (b *batch) load() int {
	b.unload()
	taken := len(b.waiters)
	for i, w := range b.waiters {
		if w.state.Load() == pending && !b.take(w) {
			taken = i
			break
		}
	}
	if b.mixed {
		slices.SortStableFunc(b.groups, func(x, y *group) int { return cmp.Compare(order[x.op], order[y.op]) })
	}
	for _, g := range b.groups {
		g.fill()
		b.send = append(b.send, g.executions[0])
	}
	return taken
}

func (b *batch) take(w *Waiter) bool {
	room := b.room
	if len(b.groups) == 0 {
		room = w.work
	}
	g := b.groupFor(w)
	if g == nil {
		if len(b.groups) > 0 {
			if room -= terms.Work; w.work > room {
				return false
			}
			b.room -= terms.Work
		}
		g = b.newGroup(w)
	}
	work, ok := g.add(w, &b.last, room)
	if ok {
		b.room -= work
		b.permission = max(b.permission, w.permission)
	}
	return ok
}

// groupFor returns the group that a waiter belongs to, or nil.
func (b *batch) groupFor(w *Waiter) *group {
	if len(b.groups) == 1 && b.groups[0].groupKey == w.groupKey {
		return b.groups[0]
	}
	return b.at[w.groupKey]
}

func (b *batch) newGroup(w *Waiter) *group {
	var g *group
	if n := len(b.spare); n > 0 {
		g, b.spare = b.spare[n-1], b.spare[:n-1]
	} else {
		g = new(group)
	}
	g.groupKey = w.groupKey
	b.mixed = b.mixed || len(b.groups) > 0 && g.op != b.groups[0].op
	b.groups = append(b.groups, g)
	b.at[g.groupKey] = g
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
	b.groups, b.send, b.room, b.mixed, b.permission = b.groups[:0], b.send[:0], terms.MaxWork, false, 0
}

// free gives the batch back.
func (b *batch) free() {
	b.unload()
	batches.Put(b)
}

// age returns how long ago the batch was sent.
func (b *batch) age() time.Duration { return clock.Now() - b.sent }
