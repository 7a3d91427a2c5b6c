package rule

import "time"

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
	// wrapper.Measure.
	Latency, Usual time.Duration
}
