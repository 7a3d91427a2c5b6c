package ratefield

import (
	"cmp"
	"math/bits"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A State is what a client may know about one limit of a call.
type State struct {
	// Rule is the name of the rule, which is not for clients.
	Rule string
	// Outgoing reports that the rule is a [runtime.Rule.Outgoing].
	Outgoing bool
	// Quota is what is admitted at most, and Left how much of it is left.
	Quota, Left int64
	// RetryAfter is 0 unless the limit has refused the call. For a limit on calls in
	// flight it is what [Holds] tells.
	RetryAfter time.Duration
	// ResetAfter is the time until the limit is whole again.
	ResetAfter time.Duration
	// MoreAfter is the time until there is more, if nothing is left and that is known.
	MoreAfter time.Duration
	// Refused reports whether the limit has refused the call.
	Refused bool
	// Counted reports whether a count was read, so that Left is known.
	Counted bool

	max    int64
	window time.Duration
	resets bool      // all at once, when its window is over
	drains bool      // evenly, as buckets do
	flight bool      // counts calls in flight
	since  time.Time // a permit of it is held, or zero
}

// StateOf returns what a decision says to a client, and false if that is nothing:
// about limits in shadow mode, and about what this process can serve at all.
func StateOf(ev *observe.DecisionEvent) (l State, ok bool) {
	if !ev.Mode.Refuses() || ev.Source == rule.SourceProcess {
		return l, false
	}
	row := algorithm.RowOf(ev.Algorithm)
	return State{
		Rule: ev.Rule, Outgoing: ev.Outgoing, Quota: ev.Limit, max: ev.Max, Left: ev.Remaining,
		window: ev.Window, RetryAfter: ev.RetryAfter, ResetAfter: ev.ResetAfter, MoreAfter: ev.MoreAfter,
		Refused: ev.Verdict == observe.VerdictRefused,
		Counted: ev.Source != rule.SourceNone && ev.Source != rule.SourceFailure && ev.Verdict != observe.VerdictUnavailable,
		resets:  row.Is(algorithm.Resets),
		drains:  row.Is(algorithm.Drains),
		flight:  row.Is(algorithm.Lends),
	}, true
}

// Member returns what the fields say about the limit, in its public form.
func (s *State) Member(p Policy) Member {
	m := Member{
		Name: p.Name, Unit: p.Unit, Quota: s.Quota, Window: s.policyWindow(),
		Known: s.Counted, Left: s.Left, Effective: s.effectiveWindow(),
	}
	if s.flight && m.Unit == "" {
		m.Unit = "concurrent-requests"
	}
	return m
}

// policyWindow returns the time in seconds to which the quota of a limit refers, or
// 0 if that is not a whole number, since the draft has no fractions, and for calls in
// flight, which are not counted by time. The quota of a bucket
// is its burst, which is admitted again in the time that the bucket needs to fill.
func (s *State) policyWindow() int64 {
	if s.flight {
		return 0
	}
	if s.Quota == s.max {
		if s.window%time.Second == 0 {
			return int64(s.window / time.Second)
		}
		return 0
	}
	if window, exact := timeFor(s.Quota, s.window, s.max); exact && window%time.Second == 0 {
		return int64(window / time.Second)
	}
	return 0
}

// effectiveWindow returns the draft's effective window in seconds: the time within
// which the client can use no more than what is left. It is at least 1, or 0 if
// there is no such time.
//
// On a refusal this is the time until the call would be admitted. If nothing is left it is the
// time until something is. Otherwise it is the time in which the rule admits as much as is
// left, or the rest of a fixed window if that is longer. So what is left is never spread over a
// shorter time than the policy spreads its quota over, which section 8.5 of the draft warns of.
func (s *State) effectiveWindow() int64 {
	if s.Refused {
		if s.RetryAfter == runtime.Never {
			return 0
		}
		return Seconds(s.RetryAfter)
	}
	if s.flight {
		return 0
	}
	window, exact := timeFor(s.Left, s.window, s.max)
	if !exact {
		window++
	}
	if s.resets {
		window = max(window, s.ResetAfter)
	} else if s.Left <= 0 {
		window = s.moreAfter()
	}
	return Seconds(window)
}

// moreAfter returns the time until there is more of a limit of which nothing is left: the
// longest that it may be where the store has not told.
func (s *State) moreAfter() time.Duration {
	if !s.drains {
		return cmp.Or(s.MoreAfter, s.ResetAfter)
	}
	rest, _ := timeFor(s.Quota-1, s.window, s.max)
	return s.ResetAfter - rest
}

// timeFor returns the time in which n is admitted, at max in each window, rounded
// down, and whether it is exact.
func timeFor(n int64, window time.Duration, max int64) (d time.Duration, exact bool) {
	if n <= 0 || window <= 0 || max <= 0 {
		return 0, true
	}
	high, low := bits.Mul64(uint64(n), uint64(window))
	if high >= uint64(max) {
		return maxTime, true
	}
	quotient, rest := bits.Div64(high, low, uint64(max))
	if quotient > uint64(maxTime) {
		return maxTime, true
	}
	return time.Duration(quotient), rest == 0
}

// maxTime is longer than any bucket takes to fill, and far from overflowing.
const maxTime = 200 * rule.MaxWindow

// Seconds rounds up to seconds, of which there is at least one.
func Seconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return max(1, seconds)
}
