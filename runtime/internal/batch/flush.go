package batch

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// flush sends batches until nobody waits, or until another flush loop has taken
// its place.
func (b *Batcher) flush(own *batch) {
	for b.collect(own) {
		ctx, cancel := context.WithTimeoutCause(context.Background(), max(b.cfg.Timeout, minBatchTime), LateError(b.cfg.Timeout))
		b.send(ctx, b.Client, own.send)
		kept := b.finish(ctx, own)
		cancel()
		if !kept {
			break
		}
	}
	own.free()
}

// flushInline sends the batch of a caller in its own goroutine. If it has to be
// sent again another goroutine does that.
func (b *Batcher) flushInline(own *batch) {
	if own.gathers {
		if !b.collect(own) {
			own.free()
			return
		}
	} else if own.load(); len(own.groups) == 0 { // its time was over before
		kept, _ := b.release(own, unsent, 0)
		b.handOver(own, kept)
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), b.cfg.Timeout, LateError(b.cfg.Timeout))
	b.send(ctx, b.Client, own.send)
	if how, _ := b.remedy(own); how != none {
		go func() {
			kept := b.finish(ctx, own)
			cancel()
			if kept {
				b.flush(own)
			} else {
				own.free()
			}
		}()
		return
	}
	kept := b.finish(ctx, own)
	cancel()
	b.handOver(own, kept)
}

// handOver ends the batch of a caller that has sent it inline, or lets a flush
// loop go on with it if somebody waits.
func (b *Batcher) handOver(own *batch, kept bool) {
	if kept {
		b.mu.Lock()
		if len(b.waiting) > 0 {
			b.mu.Unlock()
			go b.flush(own)
			return
		}
		b.inFlight--
		b.mu.Unlock()
	}
	own.free()
}

// send has a client execute scripts, which look whether the server can count as long as
// that is not known.
func (b *Batcher) send(ctx context.Context, client redis.UniversalClient, executions []*script.Execution) {
	if !b.fit.Load() {
		for _, e := range executions {
			e.Check = true
		}
	}
	if panicked := b.cfg.Library.Send(ctx, client, executions); panicked != nil {
		b.cfg.Panicked(panicked)
	}
}

// finish sees a batch that was sent to its end, and tells its callers what became
// of their calls. It returns false if another flush loop has taken the place of
// this one.
func (b *Batcher) finish(ctx context.Context, own *batch) bool {
	redirected := b.resend(ctx, own)
	permission, sent, took, err := own.permission, own.sent, own.age(), own.err()
	how := failed
	switch {
	case redirected:
		how = elsewhere
	case script.Answered(err):
		how = answered
		if err == nil && !b.fit.Load() {
			b.fit.Store(true)
		}
	}
	kept, overdue := b.release(own, how, took)
	if err != nil {
		b.moved(own)
	} else {
		b.tellShared(own)
	}
	for _, g := range own.groups {
		b.tell(own, g)
	}
	switch {
	case how == answered && overdue:
		b.Breaker.Late(permission)
	case how == answered:
		b.Breaker.Success(permission)
		b.warm(took)
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

// tell tells the callers of a group what became of their calls. What was denied
// is known to all before: whoever was told finds it out without Redis.
func (b *Batcher) tell(own *batch, g *group) {
	for _, e := range g.executions {
		b.watchClock(own.clock, e.Clock)
	}
	if m := b.cfg.Denials; m != nil && g.op == script.Take && g.learn(m, own.sent) {
		m.Publish()
	}
	unwanted := g.finish()
	for g.op == script.Take && len(unwanted) > 0 {
		n, _ := terms.Fit(unwanted)
		b.giveBack(g.slot, unwanted[:n])
		unwanted = unwanted[n:]
	}
}

// giveBack returns permits of callers who have given up: nobody else would, and
// they would count until they lapse. If that fails they do.
func (b *Batcher) giveBack(slot int, permits []terms.Call) {
	w := NewWaiter(script.Settle, clock.Now())
	for i := range permits {
		held, c := &permits[i].Charges[0], w.Charge()
		*c = *held
		c.GiveBack()
		w.SetKey(held.Key)
		w.EndCall(false)
	}
	w.Seal()
	w.SetSlot(slot)
	_ = b.Start(context.Background(), w, false)
}

// dropDenied takes those out of a batch that is about to be sent whose calls are
// denied by what was learned since they arrived, and tells them. Redis need not
// say so again. It returns how many they are.
func (b *Batcher) dropDenied(own *batch) int {
	m := b.cfg.Denials
	if m == nil || m.Empty() {
		return 0
	}
	own.denied = own.denied[:0]
	for _, w := range own.waiters {
		if w.op == script.Take && w.state.Load() == pending && m.DeniedSince(w.Calls, w.arrived) {
			own.denied = append(own.denied, w)
		}
	}
	if len(own.denied) == 0 {
		return 0
	}
	b.unregister(own, own.denied)
	for i, w := range own.denied {
		permission := w.permission // the waiter is its caller's once that is told
		if w.finish(nil, false) {
			b.Breaker.Cancel(permission)
		}
		own.denied[i] = nil
	}
	return len(own.denied)
}

// unregister takes waiters out of a batch, which are in the order that they have
// there. Only then may their callers be told, who use them again.
func (b *Batcher) unregister(own *batch, gone []*Waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	stay := own.waiters[:0]
	for _, w := range own.waiters {
		if len(gone) > 0 && w == gone[0] {
			gone = gone[1:]
			continue
		}
		stay = append(stay, w)
	}
	clear(own.waiters[len(stay):])
	own.waiters = stay
}

// warm makes connections ahead of need when Redis is far away, which a few slow
// batches in a row show: to make one takes several round trips, longer than a
// caller waits, and as many are needed as batches are sent while one is under
// way.
func (b *Batcher) warm(took time.Duration) {
	if took <= b.linger || b.node == nil {
		if b.slow.Load() != 0 {
			b.slow.Store(0)
		}
		return
	}
	if b.slow.Add(1) < farAfter {
		return
	}
	need := min(b.limit, baseInFlight+int(took/b.linger)+1)
	if int(b.node.PoolStats().TotalConns) >= need {
		return
	}
	now, last := int64(clock.Now()), b.warming.Load()
	if now-last < int64(time.Second) || !b.warming.CompareAndSwap(last, now) {
		return
	}
	for range need {
		go func() {
			defer func() { _ = recover() }() // a hook's, which the next batch reports
			ctx, cancel := context.WithTimeout(context.Background(), minBatchTime)
			defer cancel()
			_ = b.node.Ping(ctx).Err()
		}()
	}
}
