package ledger

import (
	"context"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

// MaxTurns is how many calls of a process may wait in one line.
const MaxTurns = 100_000

// Lines are where calls of this process wait for room, in the order of their arrival: a line for
// each key and max. They are safe for concurrent use.
type Lines struct {
	mu         sync.Mutex
	byKey      map[string][]*line
	waiting    atomic.Int64       // how many calls are in lines
	roomCounts [256]atomic.Uint32 // how often room of keys has come, by their hashes

	// Most is how many calls a line has at most, [MaxTurns] unless a test sets it.
	Most int
	// Process is the number by which stores know this process in lines for permits.
	Process int64
}

// A line is where calls wait for room of one key under one max. The rule may change while they
// wait. Who waits at the front asks the store when the line says. As many more calls ask at the
// same time as there is known to be room for. Calls that ask are not among those that wait.
//
// A call is woken by [Lines.Wake], when another one gives back what it was charged, its permits are
// certainly returned or the key is reset; by [Turn.leave], when a call before it has left; and in
// [Turn.Await], by the time, by other overrides or by the end of its context or limiter.
type line struct {
	lines       *Lines
	key         string
	max         int64         // before overrides and load have changed it
	first, last *Turn         // of those that wait
	count       int           // of all
	arrivals    int64         // so far
	asking      int64         // what those that ask cost
	due         time.Duration // the instant at which the first one asks; never while one asks that will say
	roomTime    time.Duration // the instant at which the store has room, by what it has said; 0: not known
	passEnd     time.Duration // the instant until which its calls may pass those of other processes
}

// A Turn is a call's place in a line.
type Turn struct {
	line          *line
	before, after *Turn // in the line, while it waits
	number        int64 // in the order of arrival
	cost          int64
	asks          bool          // or is about to; it does not wait
	changed       chan struct{} // receives a value when asks, due or the turn's place has changed
}

// A Waiter is a call that waits in a line.
type Waiter interface {
	// Begin is called before it waits.
	Begin()
	// Replaced is closed when what holds for it may have changed.
	Replaced() <-chan struct{}
	// Changed reports whether it has.
	Changed() bool
	// Closed is closed when no call is to wait any more.
	Closed() <-chan struct{}
	// Poll is how often that is to be looked at; 0: never.
	Poll() time.Duration
}

// Waiting reports whether calls of this process wait for room.
func (l *Lines) Waiting() bool { return l.waiting.Load() > 0 }

// Count returns how many lines there are, and how many calls are in them.
func (l *Lines) Count() (lines, calls int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, all := range l.byKey {
		lines += len(all)
	}
	return lines, int(l.waiting.Load())
}

// Empty reports whether no call of this process waits for room of a key.
func (l *Lines) Empty(key []byte) bool {
	if !l.Waiting() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byKey[string(key)]) == 0
}

// InLine reports whether a turn, which may be nil, is in the line for a key and a max.
func (t *Turn) InLine(key []byte, max int64) bool { return t != nil && t.line.matches(key, max) }

// Key returns the key in whose line a turn is.
func (t *Turn) Key() []byte { return []byte(t.line.key) }

func (l *line) matches(key []byte, max int64) bool { return l.max == max && l.key == string(key) }

// find returns the line for a key and a max, or nil.
func (l *Lines) find(key []byte, max int64) *line {
	for _, n := range l.byKey[string(key)] {
		if n.max == max {
			return n
		}
	}
	return nil
}

// JoinExisting returns the turn at the end of a line of a call that has not asked the store. It
// returns nil if there is no such line, if the line is full, or if the call may not wait until
// the store has room as far as that is known.
func (l *Lines) JoinExisting(key []byte, max, cost int64, wait time.Duration) *Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.find(key, max)
	if n == nil || n.count >= l.Most || n.roomTime-clock.Now() > wait {
		return nil
	}
	t := n.enter(cost)
	n.push(t)
	return t
}

// Join returns the turn in the line for a key and a max of a call that the store has refused. The
// turn that the call has, or nil, keeps its place if it is in that line, and otherwise passes. The
// first one of the line asks the store again at an instant, and there is room at another one; 0:
// that is not known. Join returns nil if the line is full.
func (l *Lines) Join(had *Turn, key []byte, max, cost int64, due, room time.Duration) *Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := had
	if !had.InLine(key, max) {
		if had != nil {
			had.leave(1)
		}
		n := l.find(key, max)
		if n == nil {
			n = &line{lines: l, key: string(key), max: max}
			if l.byKey == nil {
				l.byKey = map[string][]*line{}
			}
			l.byKey[n.key] = append(l.byKey[n.key], n)
		}
		if n.count >= l.Most {
			return nil
		}
		t = n.enter(cost)
	} else {
		t.stop()
	}
	n := t.line
	n.due, n.roomTime = due, room
	n.push(t)
	return t
}

// enter returns a new turn, which neither waits nor asks yet.
func (l *line) enter(cost int64) *Turn {
	l.count++
	l.arrivals++
	l.lines.waiting.Add(1)
	return &Turn{line: l, number: l.arrivals, cost: cost, changed: make(chan struct{}, 1)}
}

// push puts a turn among those that wait, in the order of arrival.
func (l *line) push(t *Turn) {
	after := l.last
	if l.first != nil && t.number < l.first.number {
		after = nil
	}
	for after != nil && after.number > t.number {
		after = after.before
	}
	t.before = after
	if after == nil {
		t.after, l.first = l.first, t
	} else {
		t.after, after.after = after.after, t
	}
	if t.after == nil {
		l.last = t
	} else {
		t.after.before = t
	}
	l.first.notify() // it may be another one, and due has changed
}

// remove takes a turn from those that wait.
func (l *line) remove(t *Turn) {
	if t.before == nil {
		l.first = t.after
	} else {
		t.before.after = t.after
	}
	if t.after == nil {
		l.last = t.before
	} else {
		t.after.before = t.before
	}
	t.before, t.after = nil, nil
	if l.first != nil {
		l.first.notify()
	}
}

func (t *Turn) notify() {
	select {
	case t.changed <- struct{}{}:
	default: // a value is there already
	}
}

// ask has a turn that waits ask the store.
func (t *Turn) ask() {
	t.line.remove(t)
	t.asks = true
	t.line.asking += t.cost
	t.notify()
}

// stop undoes ask, but for the turn's place.
func (t *Turn) stop() {
	if t.asks {
		t.asks = false
		t.line.asking -= t.cost
	}
}

// grant has as many of those that wait ask as there is room for: the first one in any case, if
// there is any.
func (l *line) grant(room int64) {
	for room > 0 && l.first != nil {
		room -= max(1, l.first.cost)
		l.first.ask()
	}
}

// RoomCount returns how often room of a key, or of another one of its hash, has come. A call that asks the store
// is in no line that somebody could wake: it notes the count before, and looks at it when it is in one.
func (l *Lines) RoomCount(key []byte) uint32 { return l.roomCount(key).Load() }

func (l *Lines) roomCount(key []byte) *atomic.Uint32 {
	return &l.roomCounts[uint8(maphash.Bytes(hashSeed, key))]
}

var hashSeed = maphash.MakeSeed()

// Wake says that so much room of a key has come.
func (l *Lines) Wake(key []byte, room int64) {
	l.roomCount(key).Add(1)
	if !l.Waiting() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.byKey[string(key)] {
		n.grant(room)
	}
}

// Await waits until the call is to ask the store, until an instant at most, or until no call is to
// wait any more. The error is the context's.
func (t *Turn) Await(ctx context.Context, deadline time.Duration, w Waiter) error {
	end := time.NewTimer(deadline - clock.Now())
	defer end.Stop()
	var due *time.Timer
	for {
		at, first, asks := t.state()
		if asks {
			return ctx.Err()
		}
		w.Begin()
		var wake <-chan time.Time
		if first {
			pause := at - clock.Now()
			if poll := w.Poll(); poll > 0 {
				pause = min(pause, poll)
			}
			if due == nil {
				due = time.NewTimer(pause)
				defer due.Stop()
			} else {
				due.Reset(pause)
			}
			wake = due.C
		}
		select {
		case <-t.changed:
			continue
		case <-wake:
			if clock.Now() < at && !w.Changed() {
				continue
			}
		case <-w.Replaced():
			if changed := w.Changed(); !first || !changed {
				continue
			}
		case <-end.C:
			if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
				return context.DeadlineExceeded // which the context is about to say
			}
		case <-w.Closed():
			return ctx.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
		t.Ask()
		return ctx.Err()
	}
}

// never is when the first call of a line asks while nobody knows when.
const never time.Duration = math.MaxInt64

// state returns when the first call of the line is to ask, whether the turn is that, and whether
// it asks already.
func (t *Turn) state() (due time.Duration, first, asks bool) {
	l := t.line.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	return t.line.due, t.line.first == t, t.asks
}

// Ask has the call ask the store, whoever is before it.
func (t *Turn) Ask() {
	l := t.line.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	if !t.asks {
		t.line.due = never
		t.ask()
	}
}

// Hurry has the first call of the line ask the store.
func (t *Turn) Hurry() {
	l := t.line.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	t.line.grant(1)
}

// quantum is for how long calls of a process may take at once what others of it have given back,
// although other processes wait: shorter calls would cost all of them more time than they take.
const quantum = 10 * time.Millisecond

// Pass reports whether calls in the line for a key and a max may pass those of other processes, and
// whether any wait besides those that ask.
func (l *Lines) Pass(key []byte, max int64) (may, wait bool) {
	if !l.Waiting() {
		return false, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.find(key, max)
	return n != nil && clock.Now() < n.passEnd, n != nil && n.first != nil
}

// Admitted takes the turn of a call that was admitted out of its line. So much is left of the
// limit, and the next one asks at once if that is something, or at the instant due.
func (t *Turn) Admitted(left int64, due time.Duration) {
	l := t.line.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	n, now := t.line, clock.Now()
	if n.passEnd <= now {
		n.passEnd = now + quantum
	}
	others := n.asking - t.cost
	if left <= others && others == 0 && (n.due == never || n.due < due) {
		n.due, n.roomTime = due, 0
	}
	t.leave(left - others)
}

// Leave takes a turn, which may be nil, out of its line. If the call was to ask and has not, it
// leaves that to the next one.
func (t *Turn) Leave(asked bool) {
	if t == nil {
		return
	}
	l := t.line.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	room := int64(0)
	if t.asks && !asked {
		room = t.cost
	}
	t.leave(room)
}

// Pass is Leave for a call that needs no room any more: the next one asks at once.
func (t *Turn) Pass() {
	if t != nil {
		l := t.line.lines
		l.mu.Lock()
		defer l.mu.Unlock()
		t.leave(1)
	}
}

// leave takes a turn out of its line, which so much room is left for.
func (t *Turn) leave(room int64) {
	n := t.line
	if t.asks {
		t.stop()
	} else {
		n.remove(t)
	}
	n.count--
	n.lines.waiting.Add(-1)
	if n.count > 0 {
		n.grant(room)
		if n.due == never && n.asking == 0 {
			n.due = clock.Now()
		}
		if n.first != nil {
			n.first.notify()
		}
		return
	}
	l := n.lines
	all := slices.DeleteFunc(l.byKey[n.key], func(o *line) bool { return o == n })
	l.byKey[n.key] = all
	if len(all) == 0 {
		delete(l.byKey, n.key)
	}
}
