package ratehttp

import (
	"math/bits"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A limit is what a request has met of one rule.
type limit struct {
	rule                    string
	quota, max, left        int64
	window, retry, whole    time.Duration // whole: until the limit is whole again
	denied, counted, resets bool          // resets: all at once, when its window is over
}

// limitOf returns what a decision says to a client, and false if that is nothing:
// about limits that are only tried, and about what this process can serve at all.
func limitOf(ev *runtime.DecisionEvent) (l limit, ok bool) {
	if ev.Mode == runtime.Shadow || ev.Source == runtime.SourceProcess {
		return l, false
	}
	return limit{
		rule: ev.Rule, quota: ev.Limit, max: ev.Max, left: ev.Remaining,
		window: ev.Window, retry: ev.RetryAfter, whole: ev.ResetAfter,
		denied:  ev.Verdict == runtime.Denied,
		counted: ev.Source != runtime.SourceNone && ev.Source != runtime.SourceFailure && ev.Verdict != runtime.Unavailable,
		resets:  ev.Algorithm == runtime.FixedWindow,
	}, true
}

// policyWindow returns the time in seconds to which the quota of a limit refers, or
// 0 if that is not a whole number: the draft has no fractions. The quota of a bucket
// is its burst, which is admitted again in the time that the bucket needs to fill.
func (l *limit) policyWindow() int64 {
	if l.quota == l.max {
		if l.window%time.Second == 0 {
			return int64(l.window / time.Second)
		}
		return 0
	}
	if window, exact := timeFor(l.quota, l.window, l.max); exact && window%time.Second == 0 {
		return int64(window / time.Second)
	}
	return 0
}

// effectiveWindow returns the draft's effective window in seconds: the time within
// which the client can use no more than what is left. It is at least 1, or 0 if
// there is no such time.
//
// On a denial this is the time until the call would be admitted. Otherwise it is the
// time in which the rule admits as much as is left, or the rest of a fixed window if
// that is longer. So what is left is never spread over a shorter time than the
// policy spreads its quota over, which section 8.5 of the draft warns of.
func (l *limit) effectiveWindow() int64 {
	if l.denied {
		if l.retry == runtime.Never {
			return 0
		}
		return wholeSeconds(l.retry)
	}
	window, exact := timeFor(l.left, l.window, l.max)
	if !exact {
		window++
	}
	if l.resets {
		window = max(window, l.whole)
	}
	return wholeSeconds(window)
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
const maxTime = 200 * runtime.MaxWindow

// wholeSeconds rounds up to seconds, of which there is at least one.
func wholeSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return max(1, seconds)
}

// tighterThan reports whether l says more about the next request than o, an earlier
// decision about the same rule, does.
func (l *limit) tighterThan(o *limit) bool {
	if l.counted != o.counted {
		return l.counted || l.denied
	}
	return l.left <= o.left
}
