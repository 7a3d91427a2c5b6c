package plan

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/background"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/rule"
)

const (
	// factorEvery is the least time between two new factors of a limit.
	factorEvery = time.Second
	// scalerGrace is how long Make may go on when the factors are closed.
	scalerGrace = time.Second
)

var errScalerHangs = errors.New("a scaler has not returned for a second since the limiter was closed")

// Factors are what the load multiplies the max of each rule with. They are 1 to begin with, and
// for rules beyond [findings.Most]. Make is called once a second at most for each rule, by one
// goroutine at a time, and not after Close; calls go on with the last factor meanwhile. The
// functions are set before the first use. It is safe for concurrent use.
type Factors struct {
	// Make returns the next factor of a rule. It is told the last one, and how long calls
	// took in the last seconds and normally. A factor that is not above 0 or not finite is 1.
	Make func(r *rule.Rule, last float64, recent, usual time.Duration) float64
	// Changed is told of a factor that differs from the last one.
	Changed func(r *rule.Rule, factor float64)

	states findings.Map[*rule.Rule, factor]

	work background.Group // of Make
}

// A factor is that of one rule.
type factor struct {
	dueTime atomic.Int64  // instant from which a new factor is made
	running atomic.Bool   // one is being made
	bits    atomic.Uint64 // of a float64; 0: 1

	latency Latency
}

func (f *factor) value() float64 {
	if bits := f.bits.Load(); bits != 0 {
		return math.Float64frombits(bits)
	}
	return 1
}

// Measure adds a call to a limit that took so long.
func (f *Factors) Measure(r *rule.Rule, took time.Duration) {
	if s := f.states.Made(r); s != nil {
		s.latency.add(took)
	}
}

// Last returns the factor of a limit.
func (f *Factors) Last(r *rule.Rule) float64 {
	if s := f.states.Find(r); s != nil {
		return s.value()
	}
	return 1
}

// Follow is Last for a call to the limit: it has the next factor made if that is due.
func (f *Factors) Follow(r *rule.Rule) float64 {
	s := f.states.Made(r)
	if s == nil {
		return 1
	}
	now, due := int64(clock.Now()), s.dueTime.Load()
	if now >= due && s.dueTime.CompareAndSwap(due, now+int64(factorEvery)) && s.running.CompareAndSwap(false, true) {
		f.work.Go(func() { f.renew(r, s) })
	}
	return s.value()
}

func (f *Factors) renew(r *rule.Rule, s *factor) {
	defer s.running.Store(false)
	recent, usual := s.latency.read(clock.Now())
	next := f.Make(r, s.value(), recent, usual)
	if !(next > 0) || math.IsInf(next, 1) {
		next = 1
	}
	if next != s.value() {
		s.bits.Store(math.Float64bits(next))
		f.Changed(r, next)
	}
}

// Known returns how many limits have a factor, at most.
func (f *Factors) Known() int { return f.states.Len() }

// Close keeps the factors as they are. It returns an error if Make goes on for a second.
func (f *Factors) Close() error {
	if !f.work.CloseWithin(scalerGrace) {
		return errScalerHangs
	}
	return nil
}
