package runtime

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// scaleEvery is the least time between two questions about one rule's factor.
const scaleEvery = time.Second

// A Scaler makes the max of a rule follow how busy things are. Package
// runtime/adaptive has one that goes by CPU, memory and latency.
type Scaler interface {
	// Factor returns what the rule's max is to be multiplied by: 1 leaves it
	// alone, less admits less. What is not above 0 or not finite counts as 1,
	// and so does a panic. It is called once a second at most for each rule
	// and limiter, never twice at a time, and in a goroutine of its own while
	// calls go on with the factor before.
	Factor(Load) float64
}

// A Load is what a [Scaler] is told of a rule.
type Load struct {
	// Rule is the rule as it was declared.
	Rule *Rule
	// Factor is the factor so far, 1 to begin with.
	Factor float64
	// Latency is how long the rule's calls took in the last seconds, and Usual
	// how long they take as a rule, which an overload takes hours to become.
	// Both are 0 before the first call was measured, see [Limiter.Measure].
	Latency, Usual time.Duration
}

// WithScaler has s scale every rule that is adaptive, in place of the rule's
// own scaler.
func WithScaler(s Scaler) Option {
	return func(l *Limiter) { l.scaling.scaler = s }
}

// Measure takes note that a call which r let through began at start and ends
// now. Generated code defers it for rules that adapt to latency. A nil Rule or
// one that is not adaptive is passed over.
func (l *Limiter) Measure(r *Rule, start time.Time) {
	if l == nil {
		l = withoutStore
	}
	if r == nil || r.Adaptive == nil {
		return
	}
	if a := l.scaling.of(r); a != nil {
		a.latency.add(time.Since(start))
	}
}

// Factor returns what the max of an adaptive rule is multiplied by just now,
// and 1 for any other.
func (l *Limiter) Factor(r *Rule) float64 {
	if l == nil {
		l = withoutStore
	}
	if r == nil || r.Adaptive == nil {
		return 1
	}
	if a := l.scaling.of(r); a != nil {
		return a.now()
	}
	return 1
}

// A scaling is what a limiter knows of its adaptive rules.
type scaling struct {
	scaler Scaler // in place of the rules' own, or nil
	rules  ruleTable[adaptation]

	mu      sync.Mutex
	closed  bool
	askings sync.WaitGroup
}

// An adaptation is what a limiter knows of one adaptive rule.
type adaptation struct {
	asked  atomic.Int64  // instant from which the scaler is due again
	busy   atomic.Bool   // the scaler is being asked
	factor atomic.Uint64 // bits of a float64; 0: 1

	latency latency
}

func (a *adaptation) now() float64 {
	if bits := a.factor.Load(); bits != 0 {
		return math.Float64frombits(bits)
	}
	return 1
}

// of returns what is known of an adaptive rule, or nil if there are too many.
func (s *scaling) of(r *Rule) *adaptation {
	if found := s.rules.of(r); found != nil {
		return found
	}
	s.rules.keep(r, new(adaptation))
	return s.rules.of(r)
}

// begin reports whether a scaler may be asked; if so, askings.Done is due.
func (s *scaling) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.askings.Add(1)
	}
	return !s.closed
}

var errScalerHangs = errors.New("a scaler has not returned for a second since the limiter was closed")

// close lets factors stay as they are, and returns when no scaler is asked any
// more.
func (s *scaling) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.askings.Wait()
		close(done)
	}()
	return await(done, errScalerHangs)
}

// scaled returns most, the max of a call by rule r, times the factor of the
// rule that it was declared as: at least 1, no less than the call costs if that
// could be admitted, and within the bounds of the rule's numbers.
func (l *Limiter) scaled(declared, r *Rule, most, cost int64) int64 {
	a := l.scaling.of(declared)
	if a == nil {
		return most
	}
	now, due := int64(instant()), a.asked.Load()
	if now >= due && a.asked.CompareAndSwap(due, now+int64(scaleEvery)) && a.busy.CompareAndSwap(false, true) {
		if l.scaling.begin() {
			go l.rescale(declared, a)
		}
	}
	factor := a.now()
	if factor == 1 {
		return most
	}
	least, bound := max(1, min(cost, most)), countings[r.counted()].max
	if burst := r.capacity(0); burst > 0 { // is what a call may cost, and drains within maxDrain
		least = min(most, int64(float64(burst)*float64(r.Window.Microseconds())/maxDrain)+1)
	}
	return max(least, int64(min(math.Round(float64(most)*factor), float64(bound))))
}

// rescale asks the scaler for a rule's factor.
func (l *Limiter) rescale(r *Rule, a *adaptation) {
	defer l.scaling.askings.Done()
	defer a.busy.Store(false)
	recent, usual := a.latency.look(instant())
	factor := l.askFactor(Load{Rule: r, Factor: a.now(), Latency: recent, Usual: usual})
	if !(factor > 0) || math.IsInf(factor, 1) {
		factor = 1
	}
	if factor != a.now() {
		a.factor.Store(math.Float64bits(factor))
		l.events.scale(ScaleEvent{r.Name, factor})
	}
}

// askFactor returns what the scaler says, and 1 if it panics.
func (l *Limiter) askFactor(load Load) (factor float64) {
	factor = 1
	defer l.events.contain("scaler")
	scaler := load.Rule.Adaptive
	if l.scaling.scaler != nil {
		scaler = l.scaling.scaler
	}
	return scaler.Factor(load)
}
