package redis

import (
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
)

// resend sends again what certainly no server has executed, until the callers'
// time is over.
func (b *batcher) resend(ctx context.Context, batch *batch) {
	for pause := time.Millisecond; ; {
		how, err := b.remedy(batch)
		if how == none || batch.age() >= b.cfg.Timeout {
			return
		}
		if how == later {
			b.router.doubt(err)
			if batch.age()+pause >= b.cfg.Timeout {
				return // the error says more than that the time is over
			}
			select {
			case <-time.After(pause):
				pause *= 2
			case <-ctx.Done():
				return
			}
		}
		elsewhere := b.prepare(ctx, batch)
		if elsewhere && !batch.redirected {
			b.redirect(batch, err)
		}
		b.sendAll(ctx, batch.send)
	}
}

// prepare collects the scripts to send again, and reports whether one of them
// goes to another server. The first of those that a server does not know brings its
// text along. One that names a key which is forbidden, or keys on two servers, goes
// without the limits in shadow mode that stand beside others: it may be for one of
// them. If it was not it is bisected, for the calls that name no forbidden key, or
// split into single calls, for each of which there is one server. One that was filled in for
// periods of a calendar that are not the server's is filled in again.
func (b *batcher) prepare(ctx context.Context, batch *batch) (elsewhere bool) {
	batch.send = batch.send[:0]
	for _, g := range batch.groups {
		for _, e := range g.executions {
			err := e.Err
			how := b.remedyFor(e)
			if how == none {
				continue
			}
			e.WithText = script.Unknown(err) && !slices.ContainsFunc(batch.send, e.TextComesWith)
			shown, elsewhen := script.Elsewhen(err)
			switch {
			case elsewhen:
				e.Refill(shown)
			case how == redirect:
				elsewhere = true
				b.direct(ctx, e)
			case refused(err) && e.Shadows():
				e.DropShadows(err)
			case script.Forbidden(err):
				batch.send = append(batch.send, g.split(e, e.Calls()/2))
			case script.TryAgain(err):
				for e.Calls() > 1 {
					batch.send = append(batch.send, g.split(e, e.Calls()-1))
				}
			}
			batch.send = append(batch.send, e)
		}
	}
	return elsewhere
}

// direct sends an execution to the server that the last one has named, or by the
// client of all servers if it has named none that is known.
func (b *batcher) direct(ctx context.Context, e *script.Execution) {
	address, ask := script.Redirection(e.Err)
	if address != "" {
		server := b.router.server(ctx, address)
		if server != nil {
			e.Server, e.Asking, e.Check = server, ask, true
			return
		}
	}
	e.Route(b.router.several)
}

// sendAll sends executions, each to its server, and those of a server in their order.
func (b *batcher) sendAll(ctx context.Context, executions []*script.Execution) {
	for len(executions) > 0 {
		server := executions[0].Server
		var mine, others []*script.Execution
		for _, e := range executions {
			if e.Server == server {
				mine = append(mine, e)
			} else {
				others = append(others, e)
			}
		}
		if server == nil {
			server = b.server
		}
		b.send(ctx, server, mine)
		executions = others
	}
}

// redirect prepares for sending a part of a batch to other servers. That may
// take a while, so the other callers are told, and another flush loop goes on.
func (b *batcher) redirect(batch *batch, err error) {
	b.moved(batch)
	b.mu.Lock()
	clear(batch.waiters)
	batch.waiters = batch.waiters[:0]
	var done []*group
	for _, g := range batch.groups {
		if g.waits(batch.send) {
			batch.waiters = append(batch.waiters, g.waiters...)
		} else {
			done = append(done, g)
		}
	}
	batch.redirected = true
	overdue := batch.overdue
	b.yield(batch)
	b.mu.Unlock()
	if !overdue && script.Answered(err) {
		b.breaker.Success(batch.permission)
	} else if !overdue {
		b.breaker.Failure(batch.permission, batch.sent)
	}
	for _, g := range done {
		b.tell(batch, g, clock.Now())
		g.clear()
	}
}

// waits reports whether one of the group's scripts is among those to send.
func (g *group) waits(send []*script.Execution) bool {
	return slices.ContainsFunc(g.executions, func(e *script.Execution) bool { return slices.Contains(send, e) })
}

// moved lets the next calls on the slots of a batch look where these are.
func (b *batcher) moved(batch *batch) {
	for _, g := range batch.groups {
		err := g.err()
		if err != nil {
			b.router.moved(b, g.slot, err)
		}
	}
}
