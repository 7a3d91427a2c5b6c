package report

import (
	"fmt"
	"slices"

	"github.com/rategen/rategen/bench/internal/contest"
	"github.com/rategen/rategen/bench/internal/limiters"
)

// A target is a number that rategen is meant to reach.
type target struct {
	what  string
	least bool // that much or more; otherwise that much or less
	want  float64
	unit  string
	value value
}

// The cases that targets speak of.
var (
	distinct = contest.Case{Callers: 256, Keys: 1000, Kind: contest.Distinct}
	alone    = contest.Case{Callers: 1, Keys: 1000, Kind: contest.Distinct}
	some     = contest.Case{Callers: 64, Keys: 1000, Kind: contest.Distinct}
	hot      = contest.Case{Callers: 256, Keys: 1, Kind: contest.Hot}
	full     = contest.Case{Callers: 256, Keys: 1000, Kind: contest.Full}

	localOne  = contest.Case{Callers: 1, Keys: 1000, Kind: contest.Distinct}
	localFull = contest.Case{Callers: 1, Keys: 1000, Kind: contest.Full}
)

const (
	overBase  = "× " + limiters.Base
	overFloor = "× " + limiters.ScriptFloor
	overLocal = "× " + limiters.LocalBase
)

var goals = []target{
	{"decisions/s, 256 callers, 1,000 keys, sliding-log packed", true, 6, overBase, ratio(distinct, limiters.RategenPacked, contest.Rate)},
	{"decisions/s, 256 callers, 1,000 keys, token-bucket", true, 6, overBase, ratio(distinct, limiters.RategenBucket, contest.Rate)},
	{"decisions/s, 256 callers, 1,000 keys, sliding-counter", true, 5, overBase, ratio(distinct, limiters.RategenCounter, contest.Rate)},
	{"decisions/s, 256 callers, 1,000 keys, sliding-log zset", true, 3.5, overBase, ratio(distinct, limiters.RategenZSET, contest.Rate)},
	{"decisions/s, 256 callers, hot key, token-bucket", true, 15, overBase, ratio(hot, limiters.RategenBucket, contest.Rate)},
	{"decisions/s, 256 callers, hot key, sliding-log packed", true, 15, overBase, ratio(hot, limiters.RategenPacked, contest.Rate)},
	{"decisions/s, 256 callers, hot key, token-bucket lease=50ms window=1s", true, 150, overBase, ratio(hot, limiters.RategenLease, contest.Rate)},
	{"p50, 256 callers, hot key, token-bucket lease=50ms window=1s", false, 1, "µs", microseconds(hot, limiters.RategenLease, contest.P50)},
	{"decisions/s, 256 callers, all refused, the slowest of rategen but concurrency", true, 200, overBase, slowest(full, limiters.RategenConcurrency)},
	{"p50, 1 caller, 1,000 keys, sliding-log packed", false, 1.2, overFloor, compareWith(alone, limiters.RategenPacked, limiters.ScriptFloor, contest.P50)},
	{"p50, 1 caller, 1,000 keys, token-bucket", false, 1.2, overFloor, compareWith(alone, limiters.RategenBucket, limiters.ScriptFloor, contest.P50)},
	{"p50, 1 caller, 1,000 keys, fixed-window", false, 1.2, overFloor, compareWith(alone, limiters.RategenFixed, limiters.ScriptFloor, contest.P50)},
	{"p50, 1 caller, 1,000 keys, sliding-log zset", false, 1.4, overFloor, compareWith(alone, limiters.RategenZSET, limiters.ScriptFloor, contest.P50)},
	{"p50, 1 caller, 1,000 keys, sliding-counter", false, 1.4, overFloor, compareWith(alone, limiters.RategenCounter, limiters.ScriptFloor, contest.P50)},
	{"p50, 1 caller, 1,000 keys, to take a permit of concurrency", false, 1.4, overFloor, compareWith(alone, limiters.RategenConcurrency, limiters.ScriptFloor, contest.P50)},
	{"p99, 256 callers, 1,000 keys, sliding-log packed", false, 0.5, overBase, ratio(distinct, limiters.RategenPacked, contest.P99)},
	{"p99, 256 callers, 1,000 keys, sliding-log zset", false, 0.5, overBase, ratio(distinct, limiters.RategenZSET, contest.P99)},
	{"p99, 256 callers, 1,000 keys, token-bucket", false, 0.5, overBase, ratio(distinct, limiters.RategenBucket, contest.P99)},
	{"p99, 256 callers, 1,000 keys, sliding-counter", false, 0.5, overBase, ratio(distinct, limiters.RategenCounter, contest.P99)},
	{"allocs, 64 callers, 1,000 keys, the most of rategen", false, 4, "", largestOf(some, contest.Allocs)},
	{"bytes an event, sliding-log packed, 10,000 events, max=10,000", false, 8.5, "", eventSize(limiters.RategenPacked, contest.Filling{Events: 10_000, Limits: limiters.Tight})},
	{"bytes an event, sliding-log packed, 10,000 events, max=20,000", false, 8.5, "", eventSize(limiters.RategenPacked, contest.Filling{Events: 10_000, Limits: limiters.Long})},
	{"in memory, the worst of all cases admitted, token-bucket", false, 1, overLocal, worstLocal(limiters.LocalBucket, contest.Distinct)},
	{"in memory, the worst of all cases admitted, sliding-log", false, 1, overLocal, worstLocal(limiters.LocalLog, contest.Distinct)},
	{"in memory, the worst of all cases admitted, fixed-window", false, 1, overLocal, worstLocal(limiters.LocalFixed, contest.Distinct)},
	{"in memory, the worst of all cases refused, token-bucket", false, 1, overLocal, worstLocal(limiters.LocalBucket, contest.Full)},
	{"in memory, the worst of all cases refused, sliding-log", false, 1, overLocal, worstLocal(limiters.LocalLog, contest.Full)},
	{"in memory, the worst of all cases refused, fixed-window", false, 1, overLocal, worstLocal(limiters.LocalFixed, contest.Full)},
	{"what the generated wrapper adds in memory", false, 25, "ns", added},
	{"allocs of the generated wrapper in memory", false, 0.01, "", localValue(localOne, limiters.LocalGenerated, contest.Allocs, 1)},
	{"a refusal known of Redis", false, 100, "ns", localValue(localFull, limiters.LocalRecalled, contest.PerOp, 1e9)},
	{"allocs of a refusal known of Redis", false, 0.01, "", localValue(localFull, limiters.LocalRecalled, contest.Allocs, 1)},
}

// reached reports whether a value is what the target wants.
func (t target) reached(value float64) bool {
	if t.least {
		return value >= t.want
	}
	return value <= t.want
}

// targets returns the table of all targets. Of several runs the median counts.
func targets(runs []*contest.Result) *grid {
	reached := "reached"
	if len(runs) > 1 {
		reached = "median (least to most)"
	}
	g := &grid{head: []string{"target", "wanted", reached, ""}}
	for _, t := range goals {
		sign := "≤"
		if t.least {
			sign = "≥"
		}
		wanted := fmt.Sprintf("%s %v %s", sign, t.want, t.unit)
		var values []float64
		for _, result := range runs {
			if value, ok := t.value(result); ok {
				values = append(values, value)
			}
		}
		if len(values) == 0 {
			g.add(t.what, wanted, "", "not measured")
			continue
		}
		middle, verdict := contest.Median(values), "no"
		if t.reached(middle) {
			verdict = "yes"
		}
		if n := len(values); n < len(runs) {
			verdict = fmt.Sprintf("measured in %d of %d runs", n, len(runs))
		}
		figure := significant(middle)
		if len(runs) > 1 {
			figure += fmt.Sprintf(" (%s to %s)", significant(slices.Min(values)), significant(slices.Max(values)))
		}
		g.add(t.what, wanted, figure, verdict)
	}
	return g
}
