package ratefield

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime"
)

// Holds tell when it is worth to try again for a permit of a limit on calls in flight.
// The limit itself cannot know: a permit comes back when its call ends, and the time
// after which it lapses is that of a process that has died. So this is the mean time for
// which calls of this process have lately held one. They are safe for concurrent use,
// and the zero value knows of none.
type Holds struct {
	means sync.Map // name of a rule -> *atomic.Int64
	rules atomic.Int64
}

// unknownHold is the time to wait while no permit has come back.
const unknownHold = time.Second

// shortestHold is the least time to wait.
const shortestHold = 100 * time.Millisecond

// ended records for how long a call has held a permit.
func (h *Holds) ended(rule string, held time.Duration) {
	found, ok := h.means.Load(rule)
	if !ok {
		if h.rules.Load() >= maxNames {
			return
		}
		if found, ok = h.means.LoadOrStore(rule, new(atomic.Int64)); !ok {
			h.rules.Add(1)
		}
	}
	mean := found.(*atomic.Int64)
	if old := mean.Load(); old == 0 {
		mean.CompareAndSwap(0, int64(max(held, 1)))
	} else {
		mean.CompareAndSwap(old, max(1, old+(int64(held)-old)/8)) // who comes second is left out
	}
}

// retryAfter returns the time to wait after a refusal by a limit on calls in flight,
// whose oldest permit lapses after another time.
func (h *Holds) retryAfter(rule string, lapse time.Duration) time.Duration {
	if lapse == runtime.Never {
		return lapse
	}
	wait := unknownHold
	if mean, ok := h.means.Load(rule); ok {
		wait = max(shortestHold, time.Duration(mean.(*atomic.Int64).Load()))
	}
	return min(wait, lapse)
}
