package redis

import (
	"bytes"
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"time"

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
	waiters    []*waiter
	sent       time.Duration // when it was sent; 0: it was not yet
	until      time.Duration // when its context ends, perhaps after it is overdue
	end        context.CancelCauseFunc
	clock      int64      // the server's latest time that was known then
	serverTime int64      // what its clock is expected to show, in microseconds
	permission permission // the newest of the waiters'
	overdue    bool       // it has had no answer within the timeout
	redirected bool       // part of it was sent to another server
	yielded    bool       // others do not wait for it to return
	gathers    bool       // see openInline
	callers    int        // of the waiters, those that are no returns
	keys       []uint64   // hashes of what it makes busy, see batcher.isBusy

	ctx     context.Context // from when it is sent until it is over
	refused []*waiter       // see dropRefused

	room   int64 // for more work
	mixed  bool  // the groups are of several operations
	groups []*group
	spare  []*group
	byKey  map[groupKey]*group
	send   []*script.Execution
	last   index
}

// A budget is the context of a batch. The batcher ends it when the batch's time is over: a
// timer of its own would take as long as the rest of what a caller does who is alone.
type budget struct {
	context.Context
	until time.Duration
}

// Deadline returns when the batcher ends the context.
func (b *budget) Deadline() (time.Time, bool) { return clock.Time(b.until), true }

// begin makes the context of a batch that is about to be sent.
func (b *batch) begin() {
	ctx, end := context.WithCancelCause(context.Background())
	b.ctx, b.end = &budget{ctx, b.until}, end
}

var batches = sync.Pool{New: func() any { return &batch{byKey: make(map[groupKey]*group)} }}

// load makes groups of the waiters from the front and returns how many fit: a batch
// is no more work than terms.MaxWork, but the first waiter always fits. It leaves out callers
// that have given up. What is given back comes before what is taken, so that a call finds the
// room that was given back before it came.
func (b *batch) load() int {
	b.unload()
	taken, last := len(b.waiters), &b.last
	if taken == 1 && len(b.waiters[0].charges) == 1 {
		last = nil // there is no other key
	}
	for i, w := range b.waiters {
		if w.state.Load() == pending && !b.take(w, last) {
			taken = i
			break
		}
	}
	if b.mixed {
		slices.SortStableFunc(b.groups, func(x, y *group) int { return cmp.Compare(order[x.op], order[y.op]) })
	}
	for _, g := range b.groups {
		g.fill(b.serverTime)
		if settles := b.byKey[groupKey{script.Settle, g.slot}]; g.op == script.Take && settles != nil {
			g.executions[0].Behind(settles.executions[0])
		}
		b.send = append(b.send, g.executions[0])
	}
	return taken
}

func (b *batch) take(w *waiter, last *index) bool {
	room := b.room
	if len(b.groups) == 0 {
		room = w.work
	}
	g := b.groupFor(w)
	if g == nil {
		if len(b.groups) > 0 {
			room -= terms.Work
			if w.work > room {
				return false
			}
			b.room -= terms.Work
		}
		g = b.newGroup(w)
	}
	work, ok := g.add(w, last, room)
	if ok {
		b.room -= work
	}
	return ok
}

// groupFor returns the group that a waiter belongs to, or nil. Most batches have one.
func (b *batch) groupFor(w *waiter) *group {
	if len(b.groups) == 1 && b.groups[0].groupKey == w.groupKey {
		return b.groups[0]
	}
	return b.byKey[w.groupKey]
}

func (b *batch) newGroup(w *waiter) *group {
	var g *group
	if n := len(b.spare); n > 0 {
		g, b.spare = b.spare[n-1], b.spare[:n-1]
	} else {
		g = new(group)
	}
	g.groupKey = w.groupKey
	b.mixed = b.mixed || len(b.groups) > 0 && g.op != b.groups[0].op
	b.groups = append(b.groups, g)
	if len(b.groups) == 2 {
		b.byKey[b.groups[0].groupKey] = b.groups[0]
	}
	if len(b.groups) > 1 {
		b.byKey[g.groupKey] = g
	}
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

// several reports whether the batch has more than one charge.
func (b *batch) several() bool {
	calls := b.groups[0].calls
	return len(b.groups) > 1 || len(calls) > 1 || len(calls[0].Charges) > 1
}

// unload lets go of everybody in the groups.
func (b *batch) unload() {
	for _, g := range b.groups {
		g.clear()
	}
	b.spare = append(b.spare, b.groups...)
	clear(b.groups)
	if len(b.byKey) > 0 {
		clear(b.byKey)
	}
	clear(b.send)
	b.last.clear()
	b.groups, b.send, b.room, b.mixed = b.groups[:0], b.send[:0], terms.MaxWork, false
}

func (b *batch) free() {
	b.unload()
	batches.Put(b)
}

func (b *batch) age() time.Duration { return clock.Now() - b.sent }

// An index finds the last call of a group that has a key, and a tenant if there are any. Clearing it
// takes constant time.
type index struct {
	entries []indexEntry // a power of two of them
	round   uint32       // entries of other rounds are empty
	used    int
}

type indexEntry struct {
	group  *group
	charge *terms.Charge // whose key it is
	hash   uint64
	round  uint32
	call   int32 // its place in the group
}

// indexSize is enough for all charges of most batches.
const indexSize = 512

var indexSeed = maphash.MakeSeed()

func (x *index) clear() {
	if x.round++; x.round == 0 {
		clear(x.entries)
		x.round = 1
	}
	x.used = 0
}

// entry returns the entry of a charge's key in a group, or the one to make for it, whose
// round is another; nil if there is no index or it is full.
func (x *index) entry(g *group, c *terms.Charge) *indexEntry {
	if x == nil {
		return nil
	}
	if x.entries == nil {
		x.entries = make([]indexEntry, indexSize)
	}
	hash := maphash.Bytes(indexSeed, c.Key)
	if c.Weight != 0 {
		hash ^= maphash.Bytes(indexSeed, c.Tenant) * 3
	}
	for i := hash % indexSize; ; i = (i + 1) % indexSize {
		e := &x.entries[i]
		if e.round != x.round {
			if x.used >= indexSize*3/4 {
				return nil
			}
			e.hash = hash
			return e
		}
		if e.hash == hash && e.group == g && bytes.Equal(e.charge.Key, c.Key) &&
			bytes.Equal(e.charge.Tenant, c.Tenant) {
			return e
		}
	}
}

// holds reports whether the entry is of this round.
func (x *index) holds(e *indexEntry) bool { return e != nil && e.round == x.round }

// set notes that a call is the last one of a group that has the entry's key. It returns the
// number, from 1 on, of the last one before it; 0: there is none. Without an entry that is not
// known, and set returns the number of the group's last call.
func (x *index) set(e *indexEntry, g *group, c *terms.Charge, call int) (previous int) {
	if e == nil {
		return call
	}
	if x.holds(e) {
		previous = int(e.call) + 1
	} else {
		e.round = x.round
		x.used++
	}
	e.group, e.charge, e.call = g, c, int32(call)
	return previous
}
