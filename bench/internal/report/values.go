package report

import (
	"slices"

	"github.com/rategen/rategen/bench/internal/contest"
	"github.com/rategen/rategen/bench/internal/limiters"
)

// A value takes a number from what was found. It returns false if that was not
// measured, or does not count.
type value func(*contest.Result) (float64, bool)

// ratio returns how a metric of a limiter over Redis compares with the base.
func ratio(c contest.Case, name string, m contest.Metric) value {
	return compareWith(c, name, limiters.Base, m)
}

// compareWith returns how it compares with another row of the case.
func compareWith(c contest.Case, name, other string, m contest.Metric) value {
	return func(result *contest.Result) (float64, bool) {
		return compare(contest.Find(result.Shared, c, name), contest.Find(result.Shared, c, other), m)
	}
}

func compare(row, base *contest.Row, m contest.Metric) (float64, bool) {
	if row == nil || base == nil || row.Fault != "" || base.Value(m) == 0 {
		return 0, false
	}
	return row.Value(m) / base.Value(m), true
}

// microseconds returns a time of a limiter over Redis.
func microseconds(c contest.Case, name string, m contest.Metric) value {
	return func(result *contest.Result) (float64, bool) {
		row := contest.Find(result.Shared, c, name)
		if row == nil || row.Fault != "" {
			return 0, false
		}
		return 1e6 * row.Value(m), true
	}
}

// slowest returns how the slowest of rategen's limiters compares with the base,
// one of them left out.
func slowest(c contest.Case, but string) value {
	return func(result *contest.Result) (least float64, ok bool) {
		for _, l := range limiters.Rategen() {
			if l.Name == but {
				continue
			}
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

// largestOf returns the largest value of a metric of rategen's limiters.
func largestOf(c contest.Case, m contest.Metric) value {
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

// worstLocal returns how a limiter in memory compares with the base in the
// case of a kind where it does so worst.
func worstLocal(name string, kind contest.Kind) value {
	return func(result *contest.Result) (worst float64, ok bool) {
		for _, c := range contest.LocalCases {
			if c.Kind != kind {
				continue
			}
			value, found := compare(contest.Find(result.Local, c, name), contest.Find(result.Local, c, limiters.LocalBase), contest.PerOp)
			if !found {
				return 0, false
			}
			worst, ok = max(worst, value), true
		}
		return worst, ok
	}
}

func localValue(c contest.Case, name string, m contest.Metric, scale float64) value {
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

// eventSize returns how many bytes of a limiter's key an event takes.
func eventSize(name string, f contest.Filling) value {
	return func(result *contest.Result) (float64, bool) {
		i := slices.Index(contest.Fillings, f)
		for _, s := range result.Sizes {
			if s.Name == name && i >= 0 {
				return float64(s.Bytes[i]) / float64(f.Events), true
			}
		}
		return 0, false
	}
}
