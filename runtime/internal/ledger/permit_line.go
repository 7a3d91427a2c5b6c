package ledger

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// How long the first call of a line waits before it asks the store again:
// another process may have returned a permit.
const (
	linePause     = 5 * time.Millisecond
	longLinePause = 50 * time.Millisecond
)

// A line is where calls of this process wait for permits of one key under one max, in the
// order of their arrival. The rule may change while they wait. Only the first call asks the
// store: at once when this process returns a permit, and otherwise after pauses. Once it is
// admitted and permits are left, the next call asks at once.
type line struct {
	key   string
	max   int64 // the max before overrides and load have changed it
	turns []*Turn
}

// A Turn is a call's place in a line.
type Turn struct {
	permits *Permits
	line    *line
	ask     bool          // the call is to ask at once
	changed chan struct{} // receives a value when ask or the turn's place has changed
	pause   time.Duration // before the call asks again; it grows with each time
}

func (t *Turn) isFirst() bool { return t.line.turns[0] == t }

func (t *Turn) notify() {
	select {
	case t.changed <- struct{}{}:
	default: // a value is there already
	}
}

// Waiting reports whether calls of this process wait for permits.
func (p *Permits) Waiting() bool { return p.waiting.Load() > 0 }

// Lines returns how many lines there are, and how many calls are in them.
func (p *Permits) Lines() (lines, calls int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines), int(p.waiting.Load())
}

// InLine reports whether a turn, which may be nil, is in the line for a key and a max.
func (t *Turn) InLine(key []byte, own int64) bool { return t != nil && t.line.matches(key, own) }

func (n *line) matches(key []byte, own int64) bool { return n.max == own && n.key == string(key) }

// Join returns a call's turn in the line for a key and a max. The turn that the call has, or
// nil, is kept if it is in that line, and otherwise passes.
func (p *Permits) Join(had *Turn, key []byte, own int64) *Turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.join(had, key, own); t != nil {
		return t
	}
	n := &line{key: string(key), max: own}
	if p.lines == nil {
		p.lines = map[string][]*line{}
	}
	p.lines[n.key] = append(p.lines[n.key], n)
	return p.enter(n)
}

// JoinExisting is Join for a line that exists. It returns nil if there is none.
func (p *Permits) JoinExisting(had *Turn, key []byte, own int64) *Turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.join(had, key, own)
}

// join is JoinExisting for callers that hold mu.
func (p *Permits) join(had *Turn, key []byte, own int64) *Turn {
	if had != nil {
		if had.line.matches(key, own) {
			return had
		}
		had.pass()
	}
	for _, n := range p.lines[string(key)] {
		if n.matches(key, own) {
			return p.enter(n)
		}
	}
	return nil
}

// enter returns a new turn at the end of a line. Its caller holds mu.
func (p *Permits) enter(n *line) *Turn {
	t := &Turn{permits: p, line: n, changed: make(chan struct{}, 1), pause: linePause}
	n.turns = append(n.turns, t)
	p.waiting.Add(1)
	return t
}

// Await waits until the call is to ask the store, for wait at most, or until no call is to wait any
// more. It calls begin before it waits. The error is the context's.
func (t *Turn) Await(ctx context.Context, wait time.Duration, closed <-chan struct{}, begin func()) error {
	p := t.permits
	end := time.NewTimer(wait)
	defer end.Stop()
	var pause <-chan time.Time // of the first one
	for {
		p.mu.Lock()
		first, ask, err := t.isFirst(), t.ask, ctx.Err()
		t.ask = ask && err != nil // the next one is to ask then
		p.mu.Unlock()
		if ask {
			return err
		}
		begin()
		if first && pause == nil {
			timer := time.NewTimer(t.pause*3/4 + rand.N(t.pause/4))
			defer timer.Stop()
			pause = timer.C
			t.pause = min(2*t.pause, longLinePause)
		}
		select {
		case <-t.changed:
		case <-pause:
			return ctx.Err()
		case <-closed:
			return ctx.Err()
		case <-end.C:
			if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
				return context.DeadlineExceeded // which the context is about to say
			}
			return ctx.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Leave takes a turn, which may be nil, out of its line.
func (t *Turn) Leave() {
	if t != nil {
		t.permits.mu.Lock()
		defer t.permits.mu.Unlock()
		t.leave()
	}
}

// Pass is Leave for a call that needs no permit any more: the next one asks the store at once.
func (t *Turn) Pass() {
	if t != nil {
		t.permits.mu.Lock()
		defer t.permits.mu.Unlock()
		t.pass()
	}
}

// pass is Pass for callers that hold mu.
func (t *Turn) pass() {
	t.ask = true
	t.leave()
}

// leave is Leave for callers that hold mu. A call that was to ask and has not leaves that to the
// next one.
func (t *Turn) leave() {
	n, p := t.line, t.permits
	first := t.isFirst()
	n.turns = slices.DeleteFunc(n.turns, func(o *Turn) bool { return o == t })
	p.waiting.Add(-1)
	if len(n.turns) == 0 {
		all := slices.DeleteFunc(p.lines[n.key], func(o *line) bool { return o == n })
		p.lines[n.key] = all
		if len(all) == 0 {
			delete(p.lines, n.key)
		}
	} else if first {
		n.turns[0].ask = n.turns[0].ask || t.ask
		n.turns[0].notify()
	}
}
