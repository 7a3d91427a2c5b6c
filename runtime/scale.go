package runtime

import (
	"errors"
	"time"

	"github.com/rategen/rategen/runtime/internal/adapt"
	"github.com/rategen/rategen/runtime/internal/bounded"
	"github.com/rategen/rategen/runtime/internal/plan"
)

// scalerGrace is how long a scaler may go on when the limiter is closed.
const scalerGrace = time.Second

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
	if a := l.scaling.of(r); a != nil {
		a.Measure(time.Since(start))
	}
}

// Factor returns the factor that multiplies the max of an adaptive rule now, and
// 1 for any other rule.
func (l *Limiter) Factor(r *Rule) float64 {
	if a := l.scaling.of(r); a != nil {
		return a.Factor()
	}
	return 1
}

// A scaling is the state of a limiter's adaptive rules.
type scaling struct {
	scaler Scaler                          // in place of the rules' own, or nil
	rules  bounded.Map[*Rule, adapt.State] // by their declarations
	calls  adapt.Group                     // of scalers
}

// of returns the state of a rule, or nil if it does not adapt or there are too many.
func (s *scaling) of(declared *Rule) *adapt.State {
	if declared == nil || declared.Adaptive == nil {
		return nil
	}
	return s.rules.Made(declared)
}

var errScalerHangs = errors.New("a scaler has not returned for a second since the limiter was closed")

// close keeps the factors as they are, and returns when no scaler runs.
func (s *scaling) close() error {
	if !s.calls.Close(scalerGrace) {
		return errScalerHangs
	}
	return nil
}

// scaled returns the max of a call by a plan times the factor of the rule as declared:
// at least 1, no less than the call's cost if that could be admitted, and within the bounds
// of the rule's numbers.
func (l *Limiter) scaled(declared *Rule, p *plan.Plan, limit, cost int64) int64 {
	a := l.scaling.of(declared)
	if a == nil {
		return limit
	}
	if a.Due() {
		l.scaling.calls.Go(func() { l.rescale(declared, a) })
	}
	if factor := a.Factor(); factor != 1 {
		return p.Numbers.Scale(limit, cost, factor)
	}
	return limit
}

// rescale calls the scaler for a rule's factor.
func (l *Limiter) rescale(r *Rule, a *adapt.State) {
	a.Make(func(recent, usual time.Duration) float64 {
		return l.callScaler(Load{Rule: r, Factor: a.Factor(), Latency: recent, Usual: usual})
	}, func(factor float64) {
		l.events.scale(ScaleEvent{r.Name, factor})
	})
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
