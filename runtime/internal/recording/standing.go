package recording

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

// maxStanding is how many refusals are looked at that an admission may lift: a stream that lasts for
// days must not grow.
const maxStanding = 8

// Refusals is a function that hears of refusals R, and those that count.
type Refusals[R any] struct {
	Record   func(R)
	Standing Standing
}

// WithRefusals returns a context that has a function which hears of refusals.
func WithRefusals[R any](ctx context.Context, record func(R)) context.Context {
	both := new(struct { // in one piece: most requests are not refused
		List[*Refusals[R]]
		Refusals[R]
	})
	both.Record, both.Func = record, &both.Refusals
	return with(ctx, &both.List)
}

// A Standing has the refusals of a request that count for its answer. The zero value has none.
type Standing struct {
	some     atomic.Bool // so that requests which are refused nothing cost one load
	mu       sync.Mutex
	refusals []*Refused // the latest last
	room     [1]*Refused
}

// A Refused is a refusal while it counts.
type Refused struct {
	Caller uint64        // whose call it was
	Until  time.Duration // an instant
	lifted atomic.Bool
}

// Stands reports whether the refusal counts.
func (r *Refused) Stands() bool { return !r.lifted.Load() && clock.Now() < r.Until }

func (s *Standing) Any() bool { return s.some.Load() }

func (s *Standing) Add(r *Refused) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusals == nil {
		s.refusals = s.room[:0]
	}
	if len(s.refusals) == maxStanding {
		s.refusals = slices.Delete(s.refusals, 0, 1)
	}
	s.refusals = append(s.refusals, r)
	s.some.Store(true)
}

// Lift lifts the refusals of a caller, whose call was admitted.
func (s *Standing) Lift(caller uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = slices.DeleteFunc(s.refusals, func(r *Refused) bool {
		if r.Caller == caller {
			r.lifted.Store(true)
		}
		return r.Caller == caller
	})
}

var callerSeed = maphash.MakeSeed()

// CallerOf returns a number for the key of a rule, which is above 0 and tells nothing else. Of two keys
// it is the same once in 2^64 times.
func CallerOf(key []byte) uint64 { return max(1, maphash.Bytes(callerSeed, key)) }
