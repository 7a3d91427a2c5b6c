package batch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

// flush sends batches until nobody waits, or until another flush loop has taken
// its place.
func (b *Batcher) flush(own *batch) {
	for b.collect(own, max(b.cfg.Timeout, minBatchTime)) {
		b.send(own.ctx, b.Server, own.send)
		if !b.finish(own, b.resend(own.ctx, own)) {
			break
		}
	}
	own.free()
}

// flushInline sends the batch of a caller in its own goroutine. If it has to be
// sent again another goroutine does that.
func (b *Batcher) flushInline(own *batch) {
	if own.gathers {
		if !b.collect(own, b.cfg.Timeout) {
			own.free()
			return
		}
	} else if own.load(); len(own.groups) == 0 { // its time was over before
		kept, _ := b.release(own, unsent, 0)
		b.handOver(own, kept)
		return
	}
	b.send(own.ctx, b.Server, own.send)
	if how, _ := b.remedy(own); how != none {
		go func() {
			if b.finish(own, b.resend(own.ctx, own)) {
				b.flush(own)
			} else {
				own.free()
			}
		}()
		return
	}
	b.handOver(own, b.finish(own, false))
}

// handOver ends the batch of a caller that has sent it inline, or lets a flush
// loop go on with it if somebody waits.
func (b *Batcher) handOver(own *batch, kept bool) {
	if kept {
		b.mu.Lock()
		if len(b.waiting) > b.resting {
			b.mu.Unlock()
			go b.flush(own)
			return
		}
		b.inFlight--
		b.mu.Unlock()
	}
	own.free()
}

// send has a server execute scripts, which look whether the server can count as long as
// that is not known.
func (b *Batcher) send(ctx context.Context, server rediswire.Server, executions []*script.Execution) {
	if !b.fit.Load() {
		for _, e := range executions {
			e.Check = true
		}
	}
	ahead := executions[:len(executions)-1] // the next ones count on what these give back
	for _, e := range ahead {
		if set, settles := e.Settles(); settles && !slices.Contains(*b.told.Load(), set) {
			e.WithText = true
		}
	}
	if panicked := b.cfg.Library.Send(ctx, server, executions); panicked != nil {
		b.cfg.Panicked(panicked)
	}
	for _, e := range ahead {
		if set, settles := e.Settles(); settles && e.WithText && e.Err == nil {
			b.learn(set)
		}
	}
}

// learn notes that the server knows a script that settles.
func (b *Batcher) learn(set uint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if told := *b.told.Load(); !slices.Contains(told, set) {
		told = append(slices.Clone(told), set)
		b.told.Store(&told)
	}
}

// finish tells the callers of a batch that was sent what became of their calls, and
// the circuit breaker what became of the batch. It returns false if another flush loop
// has taken the place of this one.
func (b *Batcher) finish(own *batch, redirected bool) bool {
	permission, sent, took, err := own.permission, own.sent, own.age(), own.err()
	how := failed
	switch {
	case redirected:
		how = elsewhere
	case err == nil:
		how = answered
		if !b.fit.Load() {
			b.fit.Store(true)
		}
	case script.Answered(err):
		how = answered
	}
	kept, overdue := b.release(own, how, took)
	own.end(nil)
	if err != nil {
		b.moved(own)
	} else if own.several() {
		b.tellShared(own)
	}
	for _, g := range own.groups {
		b.tell(own, g, sent+took)
	}
	switch {
	case how == answered && overdue:
		b.Breaker.Late(permission)
	case how == answered:
		b.Breaker.Success(permission)
		if far := took > b.linger && b.about.Most > 0; far {
			b.warm(took)
		} else if b.slow.Load() != 0 {
			b.slow.Store(0)
		}
	case how == failed && !overdue:
		b.Breaker.Failure(permission, sent)
	}
	return kept
}

// newestPermission returns the permission of a batch whose waiters are still registered.
func (b *batch) newestPermission() (newest breaker.Permission) {
	for _, w := range b.waiters {
		newest = max(newest, w.permission)
	}
	return newest
}

// tell tells the callers of a group, which was answered at an instant, what became of their
// calls. What was denied is known to all before: whoever was told finds it out without Redis.
func (b *Batcher) tell(own *batch, g *group, answered time.Duration) {
	for _, e := range g.executions {
		if back := b.clock.Learn(own.clock, e.Clock); back > 0 && b.cfg.SteppedBack != nil {
			b.cfg.SteppedBack(b.Address(), back)
		}
	}
	if m := b.cfg.Denials; m != nil && g.op == script.Take && g.learn(m, own.sent, answered) {
		m.Publish()
	}
	unwanted := g.finish(b)
	if g.op == script.Take {
		b.giveBack(g.slot, unwanted)
	}
}

// giveBack returns what was charged for callers who have given up: nobody else would. If that
// fails it counts until it lapses or leaves the window.
func (b *Batcher) giveBack(slot int, unwanted []terms.Call) {
	for i := range unwanted {
		back := unwanted[i].Charges[0]
		back.GiveBack()
		b.Return(&back, slot, forgotten{})
	}
}

// forgotten is told of returns about which nobody wants to know.
type forgotten struct{}

func (forgotten) Done(error) {}

// A remedy is how to send a script again that certainly no server has executed.
type remedy uint8

const (
	none     remedy = iota
	atOnce          // by the same client: with its text, in pieces, or for another time
	redirect        // to another server
	later           // by the same client, after a pause
)

// remedy returns how to send scripts of a batch again, and the error of one of
// them.
func (b *Batcher) remedy(own *batch) (how remedy, err error) {
	for _, g := range own.groups {
		for _, e := range g.executions {
			if one := b.remedyFor(e); one != none && (how == none || one < how) {
				how, err = one, e.Err
			}
		}
	}
	return how, err
}

// remedyFor returns how to send one script again.
func (b *Batcher) remedyFor(e *script.Execution) remedy {
	err := e.Err
	if err == nil {
		return none
	}
	routed := b.cfg.Router == nil || e.Server == b.cfg.Router // to a client that reaches all servers
	_, elsewhen := script.Elsewhen(err)
	switch {
	case script.Unknown(err), elsewhen, refused(err) && (e.Calls() > 1 || e.Shadows()):
		return atOnce
	case !routed && (script.Moved(err) || errors.Is(err, rediswire.ErrClosed)):
		return redirect
	case script.NotNow(err), script.NotSent(err):
		if routed {
			return later
		}
		return redirect
	}
	return none
}

// refused reports whether a server has refused a whole script because of one of its keys.
func refused(err error) bool { return script.Forbidden(err) || script.TryAgain(err) }
