package report

import (
	"testing"

	"github.com/rategen/rategen/bench/internal/contest"
	"github.com/rategen/rategen/bench/internal/limiters"
)

func TestReached(t *testing.T) {
	least, most := target{least: true, want: 5}, target{want: 5}
	for _, test := range []struct {
		t     target
		value float64
		want  bool
	}{{least, 5, true}, {least, 4.9, false}, {most, 5, true}, {most, 5.1, false}} {
		if got := test.t.reached(test.value); got != test.want {
			t.Errorf("%v of %v: %v", test.value, test.t, got)
		}
	}
}

// fullResult returns a result in which each limiter does everything in one and the
// same time, other than some. It has all that targets speak of.
func fullResult(other map[string]float64) *contest.Result {
	value := func(name string) float64 {
		if v, ok := other[name]; ok {
			return v
		}
		return 1
	}
	row := func(name string) contest.Row {
		r := contest.Row{Name: name}
		r.Set(contest.Rate, 1/value(name))
		r.Set(contest.Allocs, 0)
		for _, m := range []contest.Metric{contest.P50, contest.P99, contest.ServerCPU, contest.PerOp} {
			r.Set(m, value(name))
		}
		return r
	}
	r := new(contest.Result)
	for _, c := range contest.SharedCases {
		table := contest.Table{Case: c}
		for _, l := range append(append(limiters.Leased(), limiters.Rategen()...), limiters.Peers()...) {
			table.Rows = append(table.Rows, row(l.Name))
		}
		r.Shared = append(r.Shared, table)
	}
	for _, c := range contest.LocalCases {
		table := contest.Table{Case: c}
		for _, l := range limiters.Locals(limiters.Server{}) {
			table.Rows = append(table.Rows, row(l.Name))
		}
		r.Local = append(r.Local, table)
	}
	for _, l := range limiters.Rategen() {
		r.Sizes = append(r.Sizes, contest.Size{Name: l.Name, Bytes: []int64{1, 90_000, 85_000}})
	}
	return r
}

// TestGoals wants every target to find what it speaks of.
func TestGoals(t *testing.T) {
	for _, goal := range goals {
		if _, ok := goal.value(fullResult(nil)); !ok {
			t.Errorf("%s: not measured", goal.what)
		}
		if _, ok := goal.value(new(contest.Result)); ok {
			t.Errorf("%s: measured where there is nothing", goal.what)
		}
	}
	lines := linesOf(fullResult(map[string]float64{
		limiters.Base: 20, limiters.RategenPacked: 3, limiters.ScriptFloor: 2.5, limiters.RategenConcurrency: 10,
		limiters.RategenBucket: 0.05, limiters.LocalBase: 0.5, limiters.RategenLease: 1e-6,
	}))
	for _, want := range []string{
		"decisions/s, 256 callers, 1,000 keys, sliding-log packed ≥ 6 × redis_rate 6.67 yes",
		"p50, 256 callers, hot key, token-bucket lease=50ms window=1s ≤ 1 µs 1.00 yes",
		// Concurrency, which is left out, would make it 2.
		"decisions/s, 256 callers, all denied, the slowest of rategen but concurrency ≥ 200 × redis_rate 6.67 no",
		"p50, 1 caller, 1,000 keys, sliding-log packed ≤ 1.2 × EVALSHA of TIME, GET and SET 1.20 yes",
		"p50, 1 caller, 1,000 keys, to take a permit of concurrency ≤ 1.4 × EVALSHA of TIME, GET and SET 4.00 no",
		"p99, 256 callers, 1,000 keys, sliding-log packed ≤ 0.5 × redis_rate 0.150 yes",
		"bytes an event, sliding-log packed, 10,000 events, max=10,000 ≤ 8.5 8.50 yes",
		"bytes an event, sliding-log packed, 10,000 events, max=20,000 ≤ 8.5 9.00 no",
		"in memory, the worst of all cases denied, sliding-log ≤ 1 × sethvargo/go-limiter 2.00 no",
		"in memory, the worst of all cases denied, token-bucket ≤ 1 × sethvargo/go-limiter 0.100 yes",
	} {
		if !lines[want] {
			t.Errorf("there is no line %q", want)
		}
	}
}

// TestWorstLocal wants the worst case to count, and none to be missing.
func TestWorstLocal(t *testing.T) {
	result := fullResult(nil)
	worst := worstLocal(limiters.LocalBucket, contest.Full)
	for i, c := range contest.LocalCases {
		row := contest.Row{Name: limiters.LocalBucket}
		row.Set(contest.PerOp, float64(i)) // the last are those of calls that are denied
		*contest.Find(result.Local, c, limiters.LocalBucket) = row
	}
	if got, ok := worst(result); !ok || got != float64(len(contest.LocalCases)-1) {
		t.Errorf("got %v, %v", got, ok)
	}
	result.Local = result.Local[:len(result.Local)-1]
	if got, ok := worst(result); ok {
		t.Errorf("got %v though a case is missing", got)
	}
}

// TestRuns wants the median of all runs to count, and a run that has not
// measured a target to be told.
func TestRuns(t *testing.T) {
	run := func(packed float64) *contest.Result {
		return fullResult(map[string]float64{limiters.Base: 12, limiters.RategenPacked: packed})
	}
	lines := linesOf(run(1), run(3), run(2))
	for _, want := range []string{
		"target wanted median (least to most)",
		"decisions/s, 256 callers, 1,000 keys, sliding-log packed ≥ 6 × redis_rate 6.00 (4.00 to 12.0) yes",
		"The targets are those of 3 runs, one after the other. All else was measured in the last, a run of 0s; the load average after it was .",
	} {
		if !lines[want] {
			t.Errorf("there is no line %q", want)
		}
	}
	faulty := run(1)
	contest.Find(faulty.Shared, distinct, limiters.RategenPacked).Fault = "denied 1 of 2"
	lines = linesOf(run(1), faulty, run(2))
	for _, want := range []string{
		"decisions/s, 256 callers, 1,000 keys, sliding-log packed ≥ 6 × redis_rate 9.00 (6.00 to 12.0) measured in 2 of 3 runs",
		"decisions/s, 256 callers, 1,000 keys, sliding-counter ≥ 5 × redis_rate 12.0 (12.0 to 12.0) yes",
	} {
		if !lines[want] {
			t.Errorf("there is no line %q", want)
		}
	}
}
