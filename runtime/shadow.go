package runtime

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/internal/route"
)

// How long a shadow limit is left out of calls, the longer the more often in a row.
const (
	shortRest = time.Second
	longRest  = time.Minute
)

// A shadowRest is the time for which a shadow limit is left out, since the store has
// refused a whole trip for one, and that trip had to be made again. It may have been
// another limit's fault. So the times differ: the one whose fault it was fails whenever
// it is back, and is left out for longer and longer, and the others do not.
type shadowRest struct {
	until atomic.Int64 // an instant
	last  atomic.Int64 // how long it was; 0: the limit was counted since
	err   atomic.Pointer[error]
}

// resting returns why a shadow limit is left out of calls now, or nil.
func (l *Limiter) resting(r *Rule) error {
	if l.rests.known.Load() == 0 {
		return nil
	}
	if rest := l.rests.of(r.declaration()); rest != nil && int64(instant()) < rest.until.Load() {
		return *rest.err.Load()
	}
	return nil
}

// shadowsDecided reports the shadow limits of a decided request that could not be. They
// are as if they had room, and nothing else about the call changes.
func (l *Limiter) shadowsDecided(ctx context.Context, req *request) {
	for i := len(req.charges) - 1; i >= 0; i-- {
		c := &req.charges[i]
		if c.Rule.Mode.Denies() {
			continue
		}
		switch err := c.Err; {
		case err != nil:
			c.pass()
			c.source = SourceFailure
			if ctx.Err() == nil {
				l.events.failure(ctx, c.Rule, FailOpen, err)
			}
			if class := ClassOf(err); class == ClassAuth || class == ClassTryAgain {
				l.rest(c.Rule.declaration(), err)
			}
		case l.rests.known.Load() > 0:
			if rest := l.rests.of(c.Rule.declaration()); rest != nil && rest.last.Load() != 0 {
				rest.last.Store(0)
			}
		}
	}
}

// rest leaves a shadow limit out of calls for a while.
func (l *Limiter) rest(declared *Rule, err error) {
	rest := l.rests.of(declared)
	if rest == nil {
		rest = new(shadowRest)
		rest.err.Store(&err)
		l.rests.keep(declared, rest)
	}
	now, until := int64(instant()), rest.until.Load()
	if now < until {
		return // a call that was under way
	}
	pause := min(max(int64(shortRest), 2*rest.last.Load()), int64(longRest))
	if rest.until.CompareAndSwap(until, now+pause/2+rand.N(pause/2)) {
		rest.last.Store(pause)
		rest.err.Store(&err)
	}
}

// askBeside has shadow limits of a request decided by the store whose other limits have
// admitted the call already, and waits no longer than [route.ShadowTime].
func (l *Limiter) askBeside(ctx context.Context, req *request) {
	soon, cancel := context.WithTimeoutCause(ctx, route.ShadowTime, batch.LateError(route.ShadowTime))
	defer cancel()
	err := l.ask(soon, req.call[:])
	if err == nil {
		err = req.call[0].Err
	}
	if err != nil {
		if soon.Err() != nil {
			err = context.Cause(soon)
		}
		for i := range req.call[0].Charges {
			req.call[0].Charges[i].Err = err
		}
	}
}
