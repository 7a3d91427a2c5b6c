package observe

import (
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/rule"
)

// A Limiter is what an [Observer] reads of a limiter. Each is a *runtime.Limiter.
type Limiter interface {
	// Rules returns the registered rules as they are now, sorted by name.
	Rules() []RuleState
	// Findings returns what is declared and does not hold at present.
	Findings() []Finding
}

// A RuleState is a registered rule and what holds for it now.
type RuleState struct {
	// Rule is the rule as it was declared.
	Rule *rule.Rule
	// Enabled is false if the kill switch or an override removes the limit.
	Enabled bool
	// Max is the rule's max with its override and its factor. Calls that bring a max of their
	// own, and single keys that are overridden, have another.
	Max int64
	// Window and Mode are as in a [DecisionEvent].
	Window time.Duration
	Mode   rule.Mode
	// Overridden reports that an override changes the rule itself.
	Overridden bool
	// Keys is how many patterns of single keys have overrides.
	Keys int
	// Factor multiplies the max of an adaptive rule now. It is 1 of other rules.
	Factor float64
	// Called reports whether a call has met the rule since it is known.
	Called bool
	// KeyParts is how many parts the key of a call had. It is 0 if it had none, or if no
	// call is known.
	KeyParts int
}

// A Finding is something that a program declares and that does not hold. It has no caller's key
// and no server's address in it.
type Finding struct {
	// Code names the kind of finding, which the manual lists under Log lines.
	Code string `json:"code"`
	// Rule is the name of the rule that it is about, or empty.
	Rule string `json:"rule,omitempty"`
	// Detail is what else it is about, such as a route or an option, or empty.
	Detail string `json:"detail,omitempty"`
	// Text says what does not hold, and Help what to do.
	Text string `json:"text"`
	Help string `json:"help"`
	// Since is when it was found.
	Since time.Time `json:"since"`
}

// String says what was found in one line.
func (f Finding) String() string {
	about := strings.TrimSpace(f.Rule + " " + f.Detail)
	if about != "" {
		about = " (" + about + ")"
	}
	return f.Code + about + ": " + f.Text + ": " + f.Help
}
