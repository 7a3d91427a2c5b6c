package redis

import (
	"context"
	"errors"
	"time"

	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

// flush sends batches until nobody waits, or until another flush loop has taken
// its place.
func (b *batcher) flush(batch *batch) {
	for b.collect(batch, max(b.cfg.Timeout, minBatchTime)) {
		b.send(batch.ctx, b.server, batch.send)
		b.resend(batch.ctx, batch)
		if !b.finish(batch) {
			break
		}
	}
	batch.free()
}

// flushInline sends the batch of a caller in its own goroutine. If it has to be
// sent again another goroutine does that.
func (b *batcher) flushInline(batch *batch) {
	if !batch.gathers {
		batch.load()
	} else if !b.collect(batch, b.cfg.Timeout) {
		batch.free()
		return
	}
	if len(batch.groups) == 0 { // its time was over before
		kept, _ := b.release(batch, unsent, 0)
		b.handOver(batch, kept)
		return
	}
	b.send(batch.ctx, b.server, batch.send)
	how, _ := b.remedy(batch)
	if how == none {
		b.handOver(batch, b.finish(batch))
		return
	}
	go func() {
		b.resend(batch.ctx, batch)
		if b.finish(batch) {
			b.flush(batch)
		} else {
			batch.free()
		}
	}()
}

// handOver ends the batch of a caller that has sent it inline, or lets a flush
// loop go on with it if somebody waits.
func (b *batcher) handOver(batch *batch, kept bool) {
	if kept {
		b.mu.Lock()
		if len(b.queue) > b.idle {
			b.mu.Unlock()
			go b.flush(batch)
			return
		}
		b.inFlight--
		b.mu.Unlock()
	}
	batch.free()
}

// send has a server execute scripts, which look whether the server can count as long as
// that is not known.
func (b *batcher) send(ctx context.Context, server rediswire.Server, executions []*script.Execution) {
	if !b.fit.Load() {
		for _, e := range executions {
			e.Check = true
		}
	}
	panicked := b.cfg.Library.Send(ctx, server, executions)
	if panicked != nil {
		b.cfg.Panicked(panicked)
	}
}

// finish tells the callers of a batch that was sent what became of their calls, and
// the circuit breaker what became of the batch. It returns false if another flush loop
// has taken the place of this one.
func (b *batcher) finish(batch *batch) bool {
	permission, sent, took, err := batch.permission, batch.sent, batch.age(), batch.err()
	how := failed
	if batch.redirected {
		how = elsewhere
	} else if err == nil || script.Answered(err) {
		how = answered
	}
	if how == answered && err == nil && !b.fit.Load() {
		b.fit.Store(true)
	}
	kept, overdue := b.release(batch, how, took)
	batch.end(nil)
	if err != nil {
		b.moved(batch)
	} else if batch.several() {
		b.tellSharding(batch)
	}
	for _, g := range batch.groups {
		b.tell(batch, g, sent+took)
	}
	if how == answered && overdue {
		b.breaker.Late(permission)
	} else if how == answered {
		b.breaker.Success(permission)
		far := took > b.linger && b.about.Most > 0
		if far {
			b.warm(took)
		} else if b.slow.Load() != 0 {
			b.slow.Store(0)
		}
	} else if how == failed && !overdue {
		b.breaker.Failure(permission, sent)
	}
	return kept
}

// tell tells the callers of a group, which was answered at an instant, what became of their
// calls. The refusal memory learns it first: a caller that is told, and calls again, finds its
// refusal there.
func (b *batcher) tell(batch *batch, g *group, answered time.Duration) {
	for _, e := range g.executions {
		step := b.clock.Learn(batch.clock, e.Clock, batch.sent)
		if step != 0 {
			b.cfg.Stepped(b.address(), step)
		}
	}
	m := b.cfg.Refusals
	if m != nil && g.op == script.Take && g.learn(m, batch.sent, answered) {
		m.Publish()
	}
	unwanted := g.finish(b)
	if g.op == script.Take {
		b.giveBack(g.slot, unwanted)
	}
}

// giveBack gives back what was charged for callers who have given up. If that fails the charge
// counts until it lapses or leaves the window.
func (b *batcher) giveBack(slot int, unwanted []terms.Call) {
	for i := range unwanted {
		back := unwanted[i].Charges[0]
		back.GiveBack()
		b.Return(&back, slot, terms.Unheard{})
	}
}

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
func (b *batcher) remedy(batch *batch) (how remedy, err error) {
	for _, g := range batch.groups {
		for _, e := range g.executions {
			one := b.remedyFor(e)
			if one != none && (how == none || one < how) {
				how, err = one, e.Err
			}
		}
	}
	return how, err
}

// remedyFor returns how to send one script again.
func (b *batcher) remedyFor(e *script.Execution) remedy {
	err := e.Err
	if err == nil {
		return none
	}
	routed := b.router.several == nil || e.Server == b.router.several // to a client that reaches all servers
	_, elsewhen := script.Elsewhen(err)
	if script.Unknown(err) || elsewhen || refused(err) && (e.Calls() > 1 || e.Shadows()) {
		return atOnce
	}
	if !routed && (script.Moved(err) || errors.Is(err, rediswire.ErrClosed)) {
		return redirect
	}
	if script.NotNow(err) || script.NotSent(err) {
		if routed {
			return later
		}
		return redirect
	}
	return none
}

// refused reports whether a server has refused a whole script because of one of its keys.
func refused(err error) bool { return script.Forbidden(err) || script.TryAgain(err) }
