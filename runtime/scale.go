package runtime

import (
	"cmp"
	"time"
)

// A Scaler makes the max of a rule follow the load. Package runtime/adaptive has one for CPU,
// memory and latency.
type Scaler interface {
	// Factor returns the factor that multiplies the rule's max: 1 leaves it alone, less admits
	// less. A factor that is not above 0 or not finite counts as 1, and so does a panic. Factor
	// is called at most once a second for each rule and limiter, never twice at a time, and in
	// a goroutine of its own while calls go on with the last factor.
	Factor(Load) float64
}

// A Load describes the load on a rule to a [Scaler].
type Load struct {
	// Rule is the rule as it was declared.
	Rule *Rule
	// Factor is the factor so far, 1 to begin with.
	Factor float64
	// Latency is how long the rule's calls took in the last seconds. Usual is how long they
	// take normally: an average over hours. Both are 0 before the first call was measured, see
	// [Limiter.Measure].
	Latency, Usual time.Duration
}

// WithScaler makes s scale every adaptive rule, in place of the rule's own scaler.
func WithScaler(s Scaler) Option { return func(l *Limiter) { l.scaler = s } }

// Measure records that a call which r admitted began at start and ends now. Generated code
// defers it for rules that adapt to latency. Another rule, or nil, is passed over.
func (l *Limiter) Measure(r *Rule, start time.Time) {
	if r.adapts() {
		l.factors.Measure(r, time.Since(start))
	}
}

// Factor returns the factor that multiplies the max of a rule now: 1 if it is not adaptive.
func (l *Limiter) Factor(r *Rule) float64 {
	if r.adapts() {
		return l.factors.Last(r)
	}
	return 1
}

// newFactor returns what the scaler says of a rule, and 1 if it panics.
func (l *Limiter) newFactor(r *Rule, last float64, recent, usual time.Duration) (factor float64) {
	factor = 1
	defer l.events.contain("scaler")
	return cmp.Or(l.scaler, r.Adaptive).Factor(Load{Rule: r, Factor: last, Latency: recent, Usual: usual})
}

func (l *Limiter) factorChanged(r *Rule, factor float64) {
	for _, o := range l.events.observers {
		notify(l.events, "observer", o.Scale, ScaleEvent{r.Name, factor})
	}
}
