package runtime

import (
	"cmp"
	"time"

	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// WithScaler makes s scale every adaptive rule, in place of the rule's own scaler.
func WithScaler(s rule.Scaler) Option { return func(l *Limiter) { l.scaler = s } }

func (l lent) Measure(r *Rule, start time.Time) {
	if plan.Adapts(r) {
		l.plans.Factors.Measure(r, time.Since(start))
	}
}

func (l lent) Factor(r *Rule) float64 {
	if plan.Adapts(r) {
		return l.plans.Factors.Last(r)
	}
	return 1
}

// newFactor returns what the scaler says of a rule, and 1 if it panics.
func (l *Limiter) newFactor(r *Rule, last float64, recent, usual time.Duration) (factor float64) {
	factor = 1
	defer l.events.contain("scaler")
	return cmp.Or(l.scaler, r.Adaptive).Factor(rule.Load{Rule: r, Factor: last, Latency: recent, Usual: usual})
}

func (l *Limiter) reportFactor(r *Rule, factor float64) {
	for _, o := range l.events.observers {
		notify(l.events, "observer", o.Scale, observe.ScaleEvent{Rule: r.Name, Factor: factor})
	}
}
