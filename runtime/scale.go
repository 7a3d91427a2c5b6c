package runtime

import (
	"math"
	"sync/atomic"
	"time"
)

// scaleEvery is the least time between two questions about one rule's factor.
const scaleEvery = time.Second

// Latencies are averaged by exponential smoothing: a new one counts for as
// much as this in the recent average and in the usual one.
const (
	recentWeight = 1.0 / 16
	usualWeight  = 1.0 / 4096
)

// A Scaler makes the max of a rule follow how busy things are. Package
// runtime/adaptive has one that goes by CPU, memory and latency.
type Scaler interface {
	// Factor returns what the rule's max is to be multiplied by: 1 leaves it
	// alone, less admits less. What is not above 0 counts as 1. It is called
	// once a second at most for each rule and limiter, in a goroutine of its
	// own while calls go on with the factor before.
	Factor(Load) float64
}

// A Load is what a [Scaler] is told of a rule.
type Load struct {
	// Rule is the rule as it was declared.
	Rule *Rule
	// Latency is how long the rule's calls took of late, and Usual how long
	// they took over a long time; see [Limiter.Measure]. Both are 0 before the
	// first.
	Latency, Usual time.Duration
}

// WithScaler has s scale every rule that is adaptive, in place of the rule's
// own scaler.
func WithScaler(s Scaler) Option {
	return func(l *Limiter) { l.scaler = s }
}

// Measure takes note that a call which r let through began at start and ends
// now. Generated code defers it for rules that adapt to latency. A nil Rule or
// one that is not adaptive is passed over.
func (l *Limiter) Measure(r *Rule, start time.Time) {
	if l == nil || r == nil || r.Adaptive == nil {
		return
	}
	took := time.Since(start)
	a := l.adaptation(r)
	a.recent.add(took, recentWeight)
	a.usual.add(took, usualWeight)
}

// Factor returns what the max of an adaptive rule is multiplied by just now,
// and 1 for any other.
func (l *Limiter) Factor(r *Rule) float64 {
	if l == nil || r == nil || r.Adaptive == nil {
		return 1
	}
	return l.adaptation(r).now()
}

// An adaptation is what a limiter knows of one adaptive rule.
type adaptation struct {
	factor        atomic.Uint64 // bits of a float64; 0: 1
	asked         atomic.Int64  // when, in nanoseconds
	recent, usual average       // of how long calls took
}

func (a *adaptation) now() float64 {
	if bits := a.factor.Load(); bits != 0 {
		return math.Float64frombits(bits)
	}
	return 1
}

func (l *Limiter) adaptation(r *Rule) *adaptation {
	if found, ok := l.adaptations.Load(r); ok {
		return found.(*adaptation)
	}
	found, _ := l.adaptations.LoadOrStore(r, new(adaptation))
	return found.(*adaptation)
}

// scaled returns most, the max of a call, times the rule's factor: at least 1,
// and no less than the call costs if that was within most.
func (l *Limiter) scaled(r *Rule, most, cost int64) int64 {
	a := l.adaptation(r)
	now, asked := time.Now().UnixNano(), a.asked.Load()
	if now-asked >= int64(scaleEvery) && a.asked.CompareAndSwap(asked, now) {
		go l.rescale(r, a)
	}
	bound := int64(MaxCount)
	if r.Algorithm == SlidingLog {
		bound = MaxLog
	}
	scaled := min(float64(bound), float64(most)*a.now())
	return max(1, min(cost, most), int64(scaled))
}

// rescale asks the scaler for a rule's factor.
func (l *Limiter) rescale(r *Rule, a *adaptation) {
	defer l.events.contain("scaler")
	scaler := r.Adaptive
	if l.scaler != nil {
		scaler = l.scaler
	}
	factor := scaler.Factor(Load{Rule: r, Latency: a.recent.load(), Usual: a.usual.load()})
	if !(factor > 0) || math.IsInf(factor, 1) {
		factor = 1
	}
	if factor != a.now() {
		a.factor.Store(math.Float64bits(factor))
		l.events.scale(ScaleEvent{r.Name, factor})
	}
}

// An average is smoothed exponentially: new values count for the same part of
// it whatever came before.
// (Roberts, "Control chart tests based on geometric moving averages",
// Technometrics 1, 1959.)
type average struct{ bits atomic.Uint64 }

// add lets a value count for weight. The first one counts in full. Of two added
// at the same moment one may be lost.
func (a *average) add(value time.Duration, weight float64) {
	old := a.bits.Load()
	next := float64(value)
	if old != 0 {
		before := math.Float64frombits(old)
		next = before + weight*(next-before)
	}
	a.bits.CompareAndSwap(old, math.Float64bits(next))
}

func (a *average) load() time.Duration { return time.Duration(math.Float64frombits(a.bits.Load())) }
