package permit

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// How long the first call of a line waits before it asks the store again:
// another process may have returned a permit.
const (
	shortPause = 5 * time.Millisecond
	longPause  = 50 * time.Millisecond
)

// A line is where calls of this process wait for permits of one key under one max, in the
// order of their arrival. The rule may change while they wait. Only the first call asks the
// store: at once when this process returns a permit, and otherwise after pauses. Once it is
// admitted and permits are left, the next call asks at once.
type line struct {
	key   string
	own   int64 // the max before overrides and load have changed it
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

func (t *Turn) first() bool { return t.line.turns[0] == t }

func (t *Turn) change() {
	select {
	case t.changed <- struct{}{}:
	default: // a value is there already
	}
}

// Wake is wake for a key that was reset.
func (p *Permits) Wake(key []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wake(string(key))
}

// Waiting reports whether calls of this process wait for permits.
func (p *Permits) Waiting() bool { return p.waiting.Load() > 0 }

// Lines returns how many lines there are, and how many calls are in them.
func (p *Permits) Lines() (lines, calls int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines), int(p.waiting.Load())
}

// For reports whether a turn, which may be nil, is in the line for a key and a max.
func (t *Turn) For(key []byte, own int64) bool { return t != nil && t.line.matches(key, own) }

func (n *line) matches(key []byte, own int64) bool { return n.own == own && n.key == string(key) }

// Join returns a call's turn in the line for a key and a max. The turn that the call has, or
// nil, is kept if it is in that line, and otherwise leaves its own. If behind is true the call
// joins only a line that exists, and Join returns nil if there is none.
func (p *Permits) Join(had *Turn, key []byte, own int64, behind bool) *Turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if had != nil {
		if had.line.matches(key, own) {
			return had
		}
		had.leave(true)
	}
	i := slices.IndexFunc(p.lines[string(key)], func(n *line) bool { return n.matches(key, own) })
	if i < 0 && behind {
		return nil
	}
	t := &Turn{permits: p, changed: make(chan struct{}, 1), pause: shortPause}
	if i < 0 {
		t.line = &line{key: string(key), own: own}
		if p.lines == nil {
			p.lines = map[string][]*line{}
		}
		p.lines[t.line.key] = append(p.lines[t.line.key], t.line)
	} else {
		t.line = p.lines[string(key)][i]
	}
	t.line.turns = append(t.line.turns, t)
	p.waiting.Add(1)
	return t
}

// Await waits until the call is to ask the store, for wait at most. It calls begin before it
// waits. The error is the context's.
func (t *Turn) Await(ctx context.Context, wait time.Duration, begin func()) error {
	p := t.permits
	end := time.NewTimer(wait)
	defer end.Stop()
	var pause <-chan time.Time // of the first one
	for {
		p.mu.Lock()
		first, ask, err := t.first(), t.ask, ctx.Err()
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
			t.pause = min(2*t.pause, longPause)
		}
		select {
		case <-t.changed:
		case <-pause:
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

// Leave takes a turn, which may be nil, out of its line. If ask is true the next one asks
// the store at once.
func (t *Turn) Leave(ask bool) {
	if t != nil {
		t.permits.mu.Lock()
		t.leave(ask)
		t.permits.mu.Unlock()
	}
}

// leave is Leave for callers that hold mu.
func (t *Turn) leave(ask bool) {
	n, p := t.line, t.permits
	first := t.first()
	ask = ask || t.ask // the call had not asked yet
	n.turns = slices.DeleteFunc(n.turns, func(o *Turn) bool { return o == t })
	p.waiting.Add(-1)
	switch {
	case len(n.turns) == 0:
		all := slices.DeleteFunc(p.lines[n.key], func(o *line) bool { return o == n })
		if p.lines[n.key] = all; len(all) == 0 {
			delete(p.lines, n.key)
		}
	case first:
		n.turns[0].ask = n.turns[0].ask || ask
		n.turns[0].change()
	}
}
