// Package adapt keeps the factor of a limit that follows the load.
//
// It is handed how long calls took, and functions that make a new factor of that. It
// promises that such a function is called once a second at most for each limit and never
// twice at a time, that calls go on with the last factor meanwhile, that a factor is above
// 0 and finite, and that none of the functions is called after Close. It never decides what
// is limited, nor by how much.
package adapt

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

// every is the least time between two new factors of a limit.
const every = time.Second

// A State is that of one limit. The zero value has the factor 1.
type State struct {
	due    atomic.Int64  // instant from which a new factor is made
	busy   atomic.Bool   // one is being made
	factor atomic.Uint64 // bits of a float64; 0: 1

	latency Latency
}

// Factor returns the factor.
func (s *State) Factor() float64 {
	if bits := s.factor.Load(); bits != 0 {
		return math.Float64frombits(bits)
	}
	return 1
}

// Measure adds a call that took so long.
func (s *State) Measure(took time.Duration) { s.latency.add(took) }

// Due reports whether a new factor is to be made. If so, and only then, Make is due.
func (s *State) Due() bool {
	now, due := int64(clock.Now()), s.due.Load()
	return now >= due && s.due.CompareAndSwap(due, now+int64(every)) && s.busy.CompareAndSwap(false, true)
}

// Make makes a new factor by a function that is given how long calls took in the last
// seconds and normally, and tells changed of it if it differs. A factor that is not above 0
// or not finite is 1.
func (s *State) Make(factor func(recent, usual time.Duration) float64, changed func(factor float64)) {
	defer s.busy.Store(false)
	f := factor(s.latency.read(clock.Now()))
	if !(f > 0) || math.IsInf(f, 1) {
		f = 1
	}
	if f != s.Factor() {
		s.factor.Store(math.Float64bits(f))
		changed(f)
	}
}

// A Group runs functions until it is closed.
type Group struct {
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// Go runs a function in a goroutine of its own, unless the group is closed.
func (g *Group) Go(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.running.Go(f)
	}
}

// Close ends the group, and reports false if a function still runs after a time.
func (g *Group) Close(within time.Duration) bool {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	done := make(chan struct{})
	go func() {
		g.running.Wait()
		close(done)
	}()
	return clock.Await(done, within)
}
