package batch

import (
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
)

// resend sends again what certainly no server has executed, until the callers'
// time is over. It reports whether something was sent to another server.
func (b *Batcher) resend(ctx context.Context, own *batch) (redirected bool) {
	for pause := time.Millisecond; ; {
		how, err := b.remedy(own)
		if how == none || own.age() >= b.cfg.Timeout {
			return redirected
		}
		if how == later {
			b.cfg.Doubt(err)
			if own.age()+pause >= b.cfg.Timeout {
				return redirected // the error says more than that the time is over
			}
			select {
			case <-time.After(pause):
				pause *= 2
			case <-ctx.Done():
				return redirected
			}
		}
		elsewhere := b.prepare(ctx, own)
		if elsewhere && !redirected {
			b.redirect(own, err)
			redirected = true
		}
		b.sendAll(ctx, own.send)
	}
}

// prepare collects the scripts to send again, and reports whether one of them
// goes to another server. The first of those that a server does not know brings its
// text along. One that names a key which is forbidden, or keys on two servers, goes
// without the limits in shadow mode that stand beside others: it may be for one of
// them. If it was not it is bisected, for the calls that name no forbidden key, or
// split into single calls, for each of which there is one server. One that was filled in for
// periods of a calendar that are not the server's is filled in again.
func (b *Batcher) prepare(ctx context.Context, own *batch) (elsewhere bool) {
	own.send = own.send[:0]
	for _, g := range own.groups {
		for _, e := range g.executions {
			err := e.Err
			how := b.remedyFor(e)
			if how == none {
				continue
			}
			e.WithText = script.Unknown(err) && !slices.ContainsFunc(own.send, e.TextComesWith)
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
				own.send = append(own.send, g.split(e, e.Calls()/2))
			case script.TryAgain(err):
				for e.Calls() > 1 {
					own.send = append(own.send, g.split(e, e.Calls()-1))
				}
			}
			own.send = append(own.send, e)
		}
	}
	return elsewhere
}

// direct sends an execution to the server that the last one has named, or by the
// client of all servers if it has named none that is known.
func (b *Batcher) direct(ctx context.Context, e *script.Execution) {
	if address, ask := script.Redirection(e.Err); address != "" {
		if server := b.cfg.Server(ctx, address); server != nil {
			e.Server, e.Asking, e.Check = server, ask, true
			return
		}
	}
	e.Route(b.cfg.Router)
}

// sendAll sends executions, each to its server, and those of a server in their order.
func (b *Batcher) sendAll(ctx context.Context, executions []*script.Execution) {
	for rest := executions; len(rest) > 0; {
		server := rest[0].Server
		slices.SortStableFunc(rest, func(x, y *script.Execution) int {
			switch first, other := x.Server == server, y.Server == server; {
			case first == other:
				return 0
			case first:
				return -1
			}
			return 1
		})
		n := slices.IndexFunc(rest, func(e *script.Execution) bool { return e.Server != server })
		if n < 0 {
			n = len(rest)
		}
		if server == nil {
			server = b.Server
		}
		b.send(ctx, server, rest[:n])
		rest = rest[n:]
	}
}

// redirect prepares for sending a part of a batch to other servers. That may
// take a while, so the other callers are told, and another flush loop goes on.
func (b *Batcher) redirect(own *batch, err error) {
	b.moved(own)
	b.mu.Lock()
	clear(own.waiters)
	own.waiters = own.waiters[:0]
	var done []*group
	for _, g := range own.groups {
		if g.waits(own.send) {
			own.waiters = append(own.waiters, g.waiters...)
		} else {
			done = append(done, g)
		}
	}
	overdue := own.overdue
	b.yield(own)
	b.mu.Unlock()
	switch {
	case overdue:
	case script.Answered(err):
		b.Breaker.Success(own.permission)
	default:
		b.Breaker.Failure(own.permission, own.sent)
	}
	for _, g := range done {
		b.tell(own, g, clock.Now())
		g.clear()
	}
}

// waits reports whether one of the group's scripts is among those to send.
func (g *group) waits(send []*script.Execution) bool {
	for _, e := range g.executions {
		for _, other := range send {
			if e == other {
				return true
			}
		}
	}
	return false
}

// moved lets the next calls on the slots of a batch look where these are.
func (b *Batcher) moved(own *batch) {
	for _, g := range own.groups {
		if len(g.executions) == 0 {
			continue
		}
		if err := g.err(); err != nil && b.cfg.Moved != nil {
			b.cfg.Moved(b, g.slot, err)
		}
	}
}
