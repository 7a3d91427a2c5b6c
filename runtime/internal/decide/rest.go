package decide

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rategen/rategen/runtime/internal/clock"
)

// How long a shadow limit is left out of calls, the longer the more often in a row.
const (
	shortRest = time.Second
	longRest  = time.Minute
)

// maxRests is how many rules may rest.
const maxRests = 10_000

// Rests are those of rules by their declarations.
type rests struct {
	rules sync.Map // unsafe.Pointer -> *rest
	known atomic.Int64
}

// A rest is the time for which a shadow limit is left out, since the store has
// refused a whole trip for one, and that trip had to be made again. It may have been
// another limit's fault. So the times differ: the one whose fault it was fails whenever
// it is back, and is left out for longer and longer, and the others do not.
type rest struct {
	until atomic.Int64 // an instant
	last  atomic.Int64 // how long it was; 0: the limit was counted since
	err   atomic.Pointer[error]
}

// why returns why a limit is left out, or nil.
func (r *rests) why(declared unsafe.Pointer, now time.Duration) error {
	if one := r.find(declared); one != nil && int64(now) < one.until.Load() {
		return *one.err.Load()
	}
	return nil
}

func (r *rests) find(declared unsafe.Pointer) *rest {
	if r.known.Load() == 0 {
		return nil
	}
	found, _ := r.rules.Load(declared)
	one, _ := found.(*rest)
	return one
}

// end notes that a limit was counted.
func (r *rests) end(declared unsafe.Pointer) {
	if one := r.find(declared); one != nil && one.last.Load() != 0 {
		one.last.Store(0)
	}
}

// begin leaves a limit out of calls for a while.
func (r *rests) begin(declared unsafe.Pointer, err error) {
	one := r.find(declared)
	if one == nil {
		if r.known.Load() >= maxRests {
			return
		}
		one = new(rest)
		one.err.Store(&err)
		if _, known := r.rules.LoadOrStore(declared, one); !known {
			r.known.Add(1)
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
