package runtime

import (
	"cmp"
	"time"

	"github.com/rategen/rategen/runtime/internal/plan"
)

// WithScaler makes s scale every adaptive rule, in place of the rule's own scaler.
func WithScaler(s Scaler) Option { return func(l *Limiter) { l.scaler = s } }

// Measure records that a call which r admitted began at start and ends now. Generated code
// defers it for rules that adapt to latency. Another rule, or nil, is passed over.
func (l *Limiter) Measure(r *Rule, start time.Time) {
	if plan.Adapts(r) {
		l.plans.Factors.Measure(r, time.Since(start))
	}
}

// Factor returns the factor that multiplies the max of a rule now: 1 if it is not adaptive.
func (l *Limiter) Factor(r *Rule) float64 {
	if plan.Adapts(r) {
		return l.plans.Factors.Last(r)
	}
	return 1
}

// newFactor returns what the scaler says of a rule, and 1 if it panics.
func (l *Limiter) newFactor(r *Rule, last float64, recent, usual time.Duration) (factor float64) {
	factor = 1
	defer l.events.contain("scaler")
	return cmp.Or(l.scaler, r.Adaptive).Factor(Load{Rule: r, Factor: last, Latency: recent, Usual: usual})
}

func (l *Limiter) reportFactor(r *Rule, factor float64) {
	for _, o := range l.events.observers {
		notify(l.events, "observer", o.Scale, ScaleEvent{r.Name, factor})
	}
}
