package batch

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/script"
)

// How a script that certainly no server has executed is sent again.
type remedy uint8

const (
	none     remedy = iota
	atOnce          // by the same client: with its text, or in pieces
	redirect        // by the client of all servers
	later           // by the same client, after a pause
)

// resend sends again what certainly no server has executed, until the callers'
// time is over. It reports whether that was done by the client of all servers.
func (b *Batcher) resend(ctx context.Context, own *batch) (redirected bool) {
	client, routed, pause := b.Client, b.cfg.Router == nil, time.Millisecond
	for {
		how, err := own.remedy(routed)
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
		if how == redirect {
			client, redirected = b.cfg.Router, true
		}
		own.prepare(routed, routed || how == redirect)
		if how == redirect {
			routed = true
			b.redirect(own, err)
		}
		b.send(ctx, client, own.send)
	}
}

// remedy returns how to send scripts of a batch again, and the error of one of
// them. Routed says that the client of all servers has sent them.
func (b *batch) remedy(routed bool) (how remedy, err error) {
	for _, g := range b.groups {
		for _, e := range g.executions {
			if one := remedyFor(e.Err, e.Calls(), routed); one != none && (how == none || one < how) {
				how, err = one, e.Err
			}
		}
	}
	return how, err
}

// prepare collects the scripts to send again. The first that a server does not
// know brings its text along. One that names a key which is forbidden is
// bisected, for the calls that name none; one whose keys lie on two servers is
// split into single calls, for each of which there is one server.
func (b *batch) prepare(was, routed bool) {
	b.send = b.send[:0]
	text := false
	for _, g := range b.groups {
		for _, e := range g.executions {
			err := e.Err
			if remedyFor(err, e.Calls(), was) == none {
				continue
			}
			if e.WithText = script.Unknown(err) && !text; e.WithText {
				text = true
			}
			switch {
			case script.Forbidden(err):
				b.send = append(b.send, g.split(e, e.Calls()/2, routed))
			case script.TryAgain(err):
				for e.Calls() > 1 {
					b.send = append(b.send, g.split(e, e.Calls()-1, routed))
				}
			}
			b.send = append(b.send, e)
		}
	}
}

// remedyFor returns how to send a script again that was for so many calls.
func remedyFor(err error, calls int, routed bool) remedy {
	switch {
	case err == nil:
		return none
	case script.Unknown(err), script.Forbidden(err) && calls > 1, script.TryAgain(err) && calls > 1 && routed:
		return atOnce
	case script.TryAgain(err) && calls > 1, !routed && (script.Moved(err) || errors.Is(err, redis.ErrClosed)):
		return redirect
	case script.NotNow(err), script.NotSent(err):
		if routed {
			return later
		}
		return redirect
	}
	return none
}

// redirect prepares for sending a part of a batch by way of the client of all
// servers. That may take a while, so the other callers are told, and another
// flush loop goes on.
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
	case script.Replied(err) && !script.NotNow(err):
		b.Breaker.Success(own.permit)
	default:
		b.Breaker.Failure(own.permit, own.sent)
	}
	for _, e := range own.send {
		e.Route()
	}
	for _, g := range done {
		b.tell(own, g)
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
