package runtime

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

// A line is where calls of this process wait for permits of one key under one
// max of their own, in the order of their arrival. What they are decided by may change
// while they wait. Only the first of them asks the store: at once when this process
// returns a permit, and else now and then. Once it is admitted and something is left the
// next one asks at once.
type line struct {
	key   string
	own   int64 // the max before overrides and load have changed it
	turns []*turn
}

// A turn is a call's place in a line.
type turn struct {
	permits *permits
	line    *line
	ask     bool          // it is to ask at once
	changed chan struct{} // receives a value when ask or its place has changed
	pause   time.Duration // before it asks again, the longer the more often it has
}

func (t *turn) first() bool { return t.line.turns[0] == t }

func (t *turn) change() {
	select {
	case t.changed <- struct{}{}:
	default: // it is about to look
	}
}

// wake has the first call of each line of a key ask the store.
func (p *permits) wake(key string) {
	for _, line := range p.lines[key] {
		line.turns[0].ask = true
		line.turns[0].change()
	}
}

// wakeKey is wake for a key that was reset.
func (p *permits) wakeKey(key []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wake(string(key))
}

// follow has a call that arrives wait behind those that wait for the same
// permits already. It returns at once, and false, if there are none, or if the call can
// never be admitted.
func (p *permits) follow(ctx context.Context, req *request) (waited bool, err error) {
	if p.waiting.Load() == 0 || req.denyUnsatisfiable() {
		return false, nil
	}
	for i := range req.charges {
		if c := &req.charges[i]; c.Rule.Algorithm == Concurrency && c.Rule.Mode == Enforce && c.Wait > 0 && p.join(req, c, true) {
			return true, p.await(ctx, req, c.Wait)
		}
	}
	return false, nil
}

// again waits until a call that was denied permits should ask the store again:
// at the latest when it may wait no longer, which is the time to be denied. The
// error is the context's.
func (p *permits) again(ctx context.Context, req *request) error {
	var denied *Charge
	wait := Never
	for i := range req.charges {
		if c := &req.charges[i]; !c.Allowed && c.Rule.Mode == Enforce {
			wait = min(wait, c.Wait)
			if denied == nil || req.turn != nil && req.turn.line.of(c) {
				denied = c
			}
		}
	}
	p.join(req, denied, false)
	return p.await(ctx, req, wait)
}

// of reports whether the line is for the permits of a charge.
func (n *line) of(c *Charge) bool { return n.key == string(c.Key) && n.own == c.own }

// join gives a request a turn in the line of a charge, if it has not got one, and
// takes it out of another one. If behind is true it joins only a line that is
// there. It reports whether the request is in the line.
func (p *permits) join(req *request, c *Charge, behind bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if req.turn != nil {
		if req.turn.line.of(c) {
			return true
		}
		req.turn.leave(true)
		req.turn = nil
	}
	i := slices.IndexFunc(p.lines[string(c.Key)], func(n *line) bool { return n.of(c) })
	if i < 0 && behind {
		return false
	}
	t := &turn{permits: p, changed: make(chan struct{}, 1), pause: shortPause}
	if i < 0 {
		t.line = &line{key: string(c.Key), own: c.own}
		if p.lines == nil {
			p.lines = map[string][]*line{}
		}
		p.lines[t.line.key] = append(p.lines[t.line.key], t.line)
	} else {
		t.line = p.lines[string(c.Key)][i]
	}
	t.line.turns = append(t.line.turns, t)
	req.turn = t
	p.waiting.Add(1)
	return true
}

// await waits until a request's turn is to ask the store, or for as long as told.
func (p *permits) await(ctx context.Context, req *request, wait time.Duration) error {
	t := req.turn
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
		p.limiter.waits(ctx, req)
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

// leaveLine takes a request out of its line. If ask is true the next one asks the
// store at once.
func (r *request) leaveLine(ask bool) {
	if t := r.turn; t != nil {
		t.permits.mu.Lock()
		t.leave(ask)
		t.permits.mu.Unlock()
		r.turn = nil
	}
}

// leave takes a turn out of its line.
func (t *turn) leave(ask bool) {
	n, p := t.line, t.permits
	first := t.first()
	ask = ask || t.ask // what it was told before it left
	n.turns = slices.DeleteFunc(n.turns, func(o *turn) bool { return o == t })
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

// leftOver reports whether an admitted request has left permits for the next call
// in its line, or is no longer bound by them.
func (r *request) leftOver() bool {
	for i := range r.charges {
		if c := &r.charges[i]; r.turn.line.of(c) {
			return c.Remaining > 0 || !c.Rule.Mode.Denies()
		}
	}
	return true
}
