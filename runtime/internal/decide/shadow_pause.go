package decide

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/rule"
)

// How long a shadow limit is left out of calls, the longer the more often in a row.
const (
	shortPause = time.Second
	longPause  = time.Minute
)

// shadowPauses are the pauses of rules, by their declarations.
type shadowPauses struct {
	findings.Map[*rule.Rule, shadowPause]
}

// A shadowPause is the time for which a limit in shadow mode is left out of calls. The store has
// refused a whole request because of such a limit, and the request had to be sent again. The
// cause may have been another limit. So the times are random: the limit that causes the error
// fails whenever it is back, and is left out for longer each time, and the others do not.
type shadowPause struct {
	end      atomic.Int64 // an instant
	duration atomic.Int64 // how long it was; 0: the limit was counted since
	err      atomic.Pointer[error]
}

// cause returns why a limit is left out, or nil.
func (p *shadowPauses) cause(declared *rule.Rule, now time.Duration) error {
	if one := p.Find(declared); one != nil && int64(now) < one.end.Load() {
		return *one.err.Load()
	}
	return nil
}

// end notes that a limit was counted.
func (p *shadowPauses) end(declared *rule.Rule) {
	if one := p.Find(declared); one != nil && one.duration.Load() != 0 {
		one.duration.Store(0)
	}
}

// begin leaves a limit out of calls for a while.
func (p *shadowPauses) begin(declared *rule.Rule, err error) {
	one := p.Find(declared)
	if one == nil {
		one = new(shadowPause)
		one.err.Store(&err)
		if !p.Keep(declared, one) {
			return
		}
	}
	now, until := int64(clock.Now()), one.end.Load()
	if now < until {
		return // a call that was under way
	}
	pause := min(max(int64(shortPause), 2*one.duration.Load()), int64(longPause))
	if one.end.CompareAndSwap(until, now+pause/2+rand.N(pause/2)) {
		one.duration.Store(pause)
		one.err.Store(&err)
	}
}

// PauseCause returns why a plan's limit in shadow mode is left out of calls now, or nil.
func (e *Engine) PauseCause(p *plan.Plan, now time.Duration) error {
	return e.shadowPauses.cause(p.Declared, now)
}
