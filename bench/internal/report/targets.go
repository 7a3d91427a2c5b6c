package report

import (
	"fmt"

	"github.com/rategen/rategen/bench/internal/contest"
	"github.com/rategen/rategen/bench/internal/limiters"
)

// A target is a number that rategen is meant to reach.
type target struct {
	what  string
	least bool // that much or more; otherwise that much or less
	want  float64
	unit  string
	value func(*contest.Result) (float64, bool)
}

// The cases that targets speak of.
var (
	distinct = contest.Case{Callers: 256, Keys: 1000, Kind: contest.Distinct}
	some     = contest.Case{Callers: 64, Keys: 1000, Kind: contest.Distinct}
	alone    = contest.Case{Callers: 1, Keys: 1000, Kind: contest.Distinct}
	hot      = contest.Case{Callers: 256, Keys: 1, Kind: contest.Hot}
	full     = contest.Case{Callers: 256, Keys: 1000, Kind: contest.Full}

	localOne  = contest.Case{Callers: 1, Keys: 1000, Kind: contest.Distinct}
	localFull = contest.Case{Callers: 1, Keys: 1000, Kind: contest.Full}
)

const overBase = "× " + limiters.Base

var goals = []target{
	{"decisions/s, 256 callers, 1,000 keys, sliding-log list", true, 5, overBase, ratio(distinct, limiters.RategenList, contest.Rate)},
	{"decisions/s, 256 callers, 1,000 keys, sliding-log zset", true, 3, overBase, ratio(distinct, limiters.RategenZSET, contest.Rate)},
	{"decisions/s, 256 callers, 1,000 keys, token-bucket", true, 4, overBase, ratio(distinct, limiters.RategenBucket, contest.Rate)},
	{"decisions/s, 256 callers, hot key, token-bucket", true, 15, overBase, ratio(hot, limiters.RategenBucket, contest.Rate)},
	{"decisions/s, 256 callers, hot key, sliding-log list", true, 15, overBase, ratio(hot, limiters.RategenList, contest.Rate)},
	{"decisions/s, 256 callers, hot key, token-bucket lease=50ms", true, 150, overBase, ratio(hot, limiters.RategenLease, contest.Rate)},
	{"p50, 256 callers, hot key, token-bucket lease=50ms", false, 1, "µs", microseconds(hot, limiters.RategenLease, contest.P50)},
	{"decisions/s, 256 callers, all denied, the slowest of rategen", true, 100, overBase, slowest(full)},
	{"asked of Redis, a key a second, all denied, the most of rategen", false, 1, "", most(full, contest.Asked)},
	{"p50, 1 caller, token-bucket", false, 1.1, overBase, ratio(alone, limiters.RategenBucket, contest.P50)},
	{"p50, 1 caller, sliding-log list", false, 1.1, overBase, ratio(alone, limiters.RategenList, contest.P50)},
	{"p50, 1 caller, sliding-log zset", false, 1.1, overBase, ratio(alone, limiters.RategenZSET, contest.P50)},
	{"Redis CPU, 256 callers, 1,000 keys, sliding-log list", false, 0.4, overBase, ratio(distinct, limiters.RategenList, contest.ServerCPU)},
	{"p99, 256 callers, 1,000 keys, sliding-log list", false, 0.5, overBase, ratio(distinct, limiters.RategenList, contest.P99)},
	{"p99, 256 callers, 1,000 keys, sliding-log zset", false, 0.5, overBase, ratio(distinct, limiters.RategenZSET, contest.P99)},
	{"p99, 256 callers, 1,000 keys, token-bucket", false, 0.5, overBase, ratio(distinct, limiters.RategenBucket, contest.P99)},
	{"allocs, 64 callers, 1,000 keys, the most of rategen", false, 4, "", most(some, contest.Allocs)},
	{"bytes an event, sliding-log list of 10,000", false, 6, "", eventSize(limiters.RategenList, 10_000)},
	{"in memory, 1 caller, 100,000 keys, token-bucket", false, 1, overLocal, localRatio(1, contest.Distinct)},
	{"in memory, 64 callers, 100,000 keys, token-bucket", false, 1, overLocal, localRatio(64, contest.Distinct)},
	{"in memory, 1 caller, 100,000 keys denied, token-bucket", false, 1, overLocal, localRatio(1, contest.Full)},
	{"in memory, 64 callers, 100,000 keys denied, token-bucket", false, 1, overLocal, localRatio(64, contest.Full)},
	{"what the generated wrapper adds in memory", false, 25, "ns", added},
	{"allocs of the generated wrapper in memory", false, 0.01, "", localValue(localOne, limiters.LocalGenerated, contest.Allocs, 1)},
	{"a denial known of Redis", false, 100, "ns", localValue(localFull, limiters.LocalRecalled, contest.PerOp, 1e9)},
}

const overLocal = "× " + limiters.LocalBase

// reached reports whether a value is what the target wants.
func (t target) reached(value float64) bool {
	if t.least {
		return value >= t.want
	}
	return value <= t.want
}

// targets returns the table of all targets.
func targets(result *contest.Result) *grid {
	g := &grid{head: []string{"target", "wanted", "reached", ""}}
	for _, t := range goals {
		sign := "≤"
		if t.least {
			sign = "≥"
		}
		wanted := fmt.Sprintf("%s %v %s", sign, t.want, t.unit)
		value, ok := t.value(result)
		switch {
		case !ok:
			g.add(t.what, wanted, "", "not measured")
		case t.reached(value):
			g.add(t.what, wanted, significant(value), "yes")
		default:
			g.add(t.what, wanted, significant(value), "no")
		}
	}
	return g
}

// ratio returns how a metric of a limiter over Redis compares with the base.
func ratio(c contest.Case, name string, m contest.Metric) func(*contest.Result) (float64, bool) {
	return func(result *contest.Result) (float64, bool) {
		return compare(contest.Find(result.Shared, c, name), contest.Find(result.Shared, c, limiters.Base), m)
	}
}

// microseconds returns a time of a limiter over Redis.
func microseconds(c contest.Case, name string, m contest.Metric) func(*contest.Result) (float64, bool) {
	return func(result *contest.Result) (float64, bool) {
		row := contest.Find(result.Shared, c, name)
		if row == nil || row.Fault != "" {
			return 0, false
		}
		return 1e6 * row.Value(m), true
	}
}

func localRatio(callers int, kind contest.Kind) func(*contest.Result) (float64, bool) {
	c := contest.Case{Callers: callers, Keys: 100_000, Kind: kind}
	return func(result *contest.Result) (float64, bool) {
		return compare(contest.Find(result.Local, c, limiters.LocalBucket), contest.Find(result.Local, c, limiters.LocalBase), contest.PerOp)
	}
}

func compare(row, base *contest.Row, m contest.Metric) (float64, bool) {
	if row == nil || base == nil || row.Fault != "" || base.Value(m) == 0 {
		return 0, false
	}
	return row.Value(m) / base.Value(m), true
}

// slowest returns how the slowest of rategen's limiters compares with the base.
func slowest(c contest.Case) func(*contest.Result) (float64, bool) {
	return func(result *contest.Result) (least float64, ok bool) {
		for _, l := range limiters.Rategen() {
			value, found := ratio(c, l.Name, contest.Rate)(result)
			if !found {
				return 0, false
			}
			if !ok || value < least {
				least, ok = value, true
			}
		}
		return least, ok
	}
}

// most returns the largest value of a metric of rategen's limiters.
func most(c contest.Case, m contest.Metric) func(*contest.Result) (float64, bool) {
	return func(result *contest.Result) (largest float64, ok bool) {
		for _, l := range limiters.Rategen() {
			row := contest.Find(result.Shared, c, l.Name)
			if row == nil || row.Fault != "" {
				return 0, false
			}
			largest, ok = max(largest, row.Value(m)), true
		}
		return largest, ok
	}
}

func localValue(c contest.Case, name string, m contest.Metric, scale float64) func(*contest.Result) (float64, bool) {
	return func(result *contest.Result) (float64, bool) {
		row := contest.Find(result.Local, c, name)
		if row == nil || row.Fault != "" {
			return 0, false
		}
		return scale * row.Value(m), true
	}
}

// added returns how many nanoseconds a call by the generated wrapper takes
// longer than one by hand.
func added(result *contest.Result) (float64, bool) {
	wrapped, ok := localValue(localOne, limiters.LocalGenerated, contest.PerOp, 1e9)(result)
	plain, found := localValue(localOne, limiters.LocalBucket, contest.PerOp, 1e9)(result)
	return wrapped - plain, ok && found
}

func eventSize(name string, events int) func(*contest.Result) (float64, bool) {
	return func(result *contest.Result) (float64, bool) {
		for _, s := range result.Sizes {
			for i, n := range contest.Events {
				if s.Name == name && n == events {
					return float64(s.Bytes[i]) / float64(n), true
				}
			}
		}
		return 0, false
	}
}
