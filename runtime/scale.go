package runtime

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// scaleEvery is the least time between two calls of a scaler for one rule.
const scaleEvery = time.Second

// A Scaler makes the max of a rule follow the load. Package runtime/adaptive has
// one for CPU, memory and latency.
type Scaler interface {
	// Factor returns the factor that multiplies the rule's max: 1 leaves it
	// alone, less admits less. A factor that is not above 0 or not finite counts
	// as 1, and so does a panic. Factor is called at most once a second for each
	// rule and limiter, never twice at a time, and in a goroutine of its own
	// while calls go on with the last factor.
	Factor(Load) float64
}

// A Load describes the load on a rule to a [Scaler].
type Load struct {
	// Rule is the rule as it was declared.
	Rule *Rule
	// Factor is the factor so far, 1 to begin with.
	Factor float64
	// Latency is how long the rule's calls took in the last seconds. Usual is how
	// long they take normally: an average over hours. Both are 0 before the first
	// call was measured, see [Limiter.Measure].
	Latency, Usual time.Duration
}

// WithScaler makes s scale every adaptive rule, in place of the rule's own
// scaler.
func WithScaler(s Scaler) Option {
	return func(l *Limiter) { l.scaling.scaler = s }
}

// Measure records that a call which r admitted began at start and ends now.
// Generated code defers it for rules that adapt to latency. A nil Rule, or one
// that is not adaptive, is passed over.
func (l *Limiter) Measure(r *Rule, start time.Time) {
	if r == nil || r.Adaptive == nil {
		return
	}
	if a := l.scaling.of(r); a != nil {
		a.latency.add(time.Since(start))
	}
}

// Factor returns the factor that multiplies the max of an adaptive rule now, and
// 1 for any other rule.
func (l *Limiter) Factor(r *Rule) float64 {
	if r == nil || r.Adaptive == nil {
		return 1
	}
	if a := l.scaling.of(r); a != nil {
		return a.now()
	}
	return 1
}

// A scaling is the state of a limiter's adaptive rules.
type scaling struct {
	scaler Scaler // in place of the rules' own, or nil
	rules  ruleTable[adaptation]

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // calls of scalers
}

// An adaptation is the state of one adaptive rule.
type adaptation struct {
	due    atomic.Int64  // instant from which the scaler is called again
	busy   atomic.Bool   // the scaler is running
	factor atomic.Uint64 // bits of a float64; 0: 1

	latency latency
}

func (a *adaptation) now() float64 {
	if bits := a.factor.Load(); bits != 0 {
		return math.Float64frombits(bits)
	}
	return 1
}

// of returns the state of an adaptive rule, or nil if there are too many rules.
func (s *scaling) of(r *Rule) *adaptation {
	if found := s.rules.of(r); found != nil {
		return found
	}
	s.rules.keep(r, new(adaptation))
	return s.rules.of(r)
}

// begin reports whether a scaler may be called. If so, running.Done is due.
func (s *scaling) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

var errScalerHangs = errors.New("a scaler has not returned for a second since the limiter was closed")

// close keeps the factors as they are, and returns when no scaler runs.
func (s *scaling) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	return await(done, sourceGrace, errScalerHangs)
}

// scaled returns the max of a call by rule r times the factor of the rule as
// declared: at least 1, no less than the call's cost if that could be admitted,
// and within the bounds of the rule's numbers.
func (l *Limiter) scaled(declared, r *Rule, limit, cost int64) int64 {
	a := l.scaling.of(declared)
	if a == nil {
		return limit
	}
	now, due := int64(instant()), a.due.Load()
	if now >= due && a.due.CompareAndSwap(due, now+int64(scaleEvery)) && a.busy.CompareAndSwap(false, true) {
		if l.scaling.begin() {
			go l.rescale(declared, a)
		}
	}
	if factor := a.now(); factor != 1 {
		return r.scale(limit, cost, factor)
	}
	return limit
}

// scale returns a max above 0 times a factor, within the bounds of scaled.
func (r *Rule) scale(limit, cost int64, factor float64) int64 {
	least, bound := max(1, min(cost, limit)), countings[r.counted()].max
	if burst := r.capacity(0); burst > 0 { // bounds the cost, and drains within maxDrain
		least = min(limit, int64(float64(burst)*float64(r.Window.Microseconds())/maxDrain)+1)
	}
	return max(least, int64(min(math.Round(float64(limit)*factor), float64(bound))))
}

// rescale calls the scaler for a rule's factor.
func (l *Limiter) rescale(r *Rule, a *adaptation) {
	defer l.scaling.running.Done()
	defer a.busy.Store(false)
	recent, usual := a.latency.read(instant())
	factor := l.callScaler(Load{Rule: r, Factor: a.now(), Latency: recent, Usual: usual})
	if !(factor > 0) || math.IsInf(factor, 1) {
		factor = 1
	}
	if factor != a.now() {
		a.factor.Store(math.Float64bits(factor))
		l.events.scale(ScaleEvent{r.Name, factor})
	}
}

// callScaler returns the scaler's factor, and 1 if it panics.
func (l *Limiter) callScaler(load Load) (factor float64) {
	factor = 1
	defer l.events.contain("scaler")
	scaler := load.Rule.Adaptive
	if l.scaling.scaler != nil {
		scaler = l.scaling.scaler
	}
	return scaler.Factor(load)
}
