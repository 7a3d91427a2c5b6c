package decide

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rategen/rategen/runtime/internal/bounded"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
)

// How long a shadow limit is left out of calls, the longer the more often in a row.
const (
	shortRest = time.Second
	longRest  = time.Minute
)

// Rests are those of rules by their declarations.
type rests struct {
	bounded.Map[unsafe.Pointer, rest]
}

// A rest is the time for which a limit in shadow mode is left out of calls. The store has
// refused a whole request because of such a limit, and the request had to be sent again. The
// cause may have been another limit. So the times are random: the limit that causes the error
// fails whenever it is back, and is left out for longer each time, and the others do not.
type rest struct {
	until atomic.Int64 // an instant
	last  atomic.Int64 // how long it was; 0: the limit was counted since
	err   atomic.Pointer[error]
}

// cause returns why a limit is left out, or nil.
func (r *rests) cause(declared unsafe.Pointer, now time.Duration) error {
	if one := r.Find(declared); one != nil && int64(now) < one.until.Load() {
		return *one.err.Load()
	}
	return nil
}

// end notes that a limit was counted.
func (r *rests) end(declared unsafe.Pointer) {
	if one := r.Find(declared); one != nil && one.last.Load() != 0 {
		one.last.Store(0)
	}
}

// begin leaves a limit out of calls for a while.
func (r *rests) begin(declared unsafe.Pointer, err error) {
	one := r.Find(declared)
	if one == nil {
		one = new(rest)
		one.err.Store(&err)
		if !r.Keep(declared, one) {
			return
		}
	}
	now, until := int64(clock.Now()), one.until.Load()
	if now < until {
		return // a call that was under way
	}
	pause := min(max(int64(shortRest), 2*one.last.Load()), int64(longRest))
	if one.until.CompareAndSwap(until, now+pause/2+rand.N(pause/2)) {
		one.last.Store(pause)
		one.err.Store(&err)
	}
}

// Resting returns why a plan's limit in shadow mode is left out of calls now, or nil.
func (e *Engine) Resting(p *plan.Plan, now time.Duration) error {
	return e.rests.cause(p.Declared, now)
}
