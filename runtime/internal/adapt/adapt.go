// Package adapt keeps the factors of limits that follow the load.
//
// It is handed how long calls took, and a function that makes a new factor of that. It
// promises that the function is called once a second at most for each limit and never
// twice at a time, that calls go on with the last factor meanwhile, that a factor is above
// 0 and finite, and that the function is not called after Close. It never decides what
// is limited, nor by how much.
package adapt

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/bounded"
	"github.com/rategen/rategen/runtime/internal/clock"
)

const (
	// every is the least time between two new factors of a limit.
	every = time.Second
	// grace is how long Make may go on when the factors are closed.
	grace = time.Second
)

var errHangs = errors.New("a scaler has not returned for a second since the limiter was closed")

// Factors are those of limits, each with the key L. They are 1 to begin with, and for keys
// beyond [bounded.Most]. Its functions are set before it is used. It is safe for concurrent
// use.
type Factors[L comparable] struct {
	// Make returns the next factor of a limit. It is told the last one, and how long calls
	// took in the last seconds and normally. A factor that is not above 0 or not finite is 1.
	Make func(limit L, last float64, recent, usual time.Duration) float64
	// Changed is told of a factor that differs from the last one.
	Changed func(limit L, factor float64)

	states bounded.Map[L, state]

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // of Make
}

// A state is that of one limit.
type state struct {
	due    atomic.Int64  // instant from which a new factor is made
	busy   atomic.Bool   // one is being made
	factor atomic.Uint64 // bits of a float64; 0: 1

	latency Latency
}

func (s *state) last() float64 {
	if bits := s.factor.Load(); bits != 0 {
		return math.Float64frombits(bits)
	}
	return 1
}

// Measure adds a call to a limit that took so long.
func (f *Factors[L]) Measure(limit L, took time.Duration) {
	if s := f.states.Made(limit); s != nil {
		s.latency.add(took)
	}
}

// Last returns the factor of a limit.
func (f *Factors[L]) Last(limit L) float64 {
	if s := f.states.Find(limit); s != nil {
		return s.last()
	}
	return 1
}

// Follow is Last for a call to the limit: it has the next factor made if that is due.
func (f *Factors[L]) Follow(limit L) float64 {
	s := f.states.Made(limit)
	if s == nil {
		return 1
	}
	now, due := int64(clock.Now()), s.due.Load()
	if now >= due && s.due.CompareAndSwap(due, now+int64(every)) && s.busy.CompareAndSwap(false, true) {
		f.mu.Lock()
		if !f.closed {
			f.running.Go(func() { f.renew(limit, s) })
		}
		f.mu.Unlock()
	}
	return s.last()
}

func (f *Factors[L]) renew(limit L, s *state) {
	defer s.busy.Store(false)
	recent, usual := s.latency.read(clock.Now())
	factor := f.Make(limit, s.last(), recent, usual)
	if !(factor > 0) || math.IsInf(factor, 1) {
		factor = 1
	}
	if factor != s.last() {
		s.factor.Store(math.Float64bits(factor))
		f.Changed(limit, factor)
	}
}

// Known returns how many limits have a factor, at most.
func (f *Factors[L]) Known() int { return f.states.Len() }

// Close keeps the factors as they are. It returns an error if Make goes on for a second.
func (f *Factors[L]) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	done := make(chan struct{})
	go func() {
		f.running.Wait()
		close(done)
	}()
	if !clock.Await(done, grace) {
		return errHangs
	}
	return nil
}
