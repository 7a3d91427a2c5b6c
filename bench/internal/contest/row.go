package contest

import (
	"fmt"
	"slices"
	"time"

	"github.com/rategen/rategen/bench/internal/limiters"
	"github.com/rategen/rategen/bench/internal/load"
)

// A Metric is one thing that is measured.
type Metric uint8

const (
	Rate      Metric = iota // decisions a second
	P50                     // seconds for a call that half of all do not exceed
	P99                     // and 99 of 100
	PerOp                   // seconds a decision, all callers together
	ServerCPU               // seconds of Redis's processor time a decision
	metrics
)

// A Row is what was found about one limiter in one case.
type Row struct {
	Name   string
	Own    bool
	ByHand string // see limiters.Shared
	// Fault says why the numbers do not count; it is empty if they do.
	Fault string
	// GaveUp is the share of calls that had no decision.
	GaveUp float64

	rounds        [metrics][]float64
	calls, gaveUp int64
}

// Value returns the median of a metric over all rounds, or 0 if it was not
// measured or does not count.
func (r *Row) Value(m Metric) float64 {
	if r.Fault != "" {
		return 0
	}
	return Median(r.rounds[m])
}

// Beside returns how a metric compares with that of another row of the table: the median of the
// rounds, each compared with itself, and the quarters beside it. It returns zeros if one of them was
// not measured or does not count.
func (r *Row) Beside(other *Row, m Metric) (median, low, high float64) {
	if other == nil || r.Fault != "" || other.Fault != "" || len(r.rounds[m]) == 0 || len(r.rounds[m]) != len(other.rounds[m]) {
		return 0, 0, 0
	}
	ratios := make([]float64, len(r.rounds[m]))
	for i, value := range r.rounds[m] {
		ratios[i] = value / other.rounds[m][i]
	}
	slices.Sort(ratios)
	quarter := (len(ratios) - 1) / 4
	return Median(ratios), ratios[quarter], ratios[len(ratios)-1-quarter]
}

func (r *Row) set(m Metric, value float64) { r.rounds[m] = append(r.rounds[m], value) }

// add takes note of a turn, in which Redis used so much of its processor.
func (r *Row) add(sample *load.Sample, used time.Duration) {
	n := float64(sample.Decisions())
	r.calls += sample.Calls()
	r.gaveUp += sample.Answers[load.Failed]
	r.GaveUp = float64(r.gaveUp) / float64(r.calls)
	if n == 0 {
		r.Fault = "decided nothing"
		return
	}
	seconds := sample.Elapsed.Seconds()
	r.set(Rate, n/seconds)
	r.set(PerOp, seconds/n)
	r.set(P50, sample.Quantile(0.50).Seconds())
	r.set(P99, sample.Quantile(0.99).Seconds())
	r.set(ServerCPU, used.Seconds()/n)
}

// judge finds out if the limiter did what the case claims.
func (r *Row) judge(c Case, sample *load.Sample) {
	wrong, what := sample.Answers[load.Refused]+sample.Answers[load.Recalled], "refused"
	if c.Kind == Full {
		wrong, what = sample.Answers[load.Admitted], "admitted"
	}
	if wrong > 0 {
		r.Fault = fmt.Sprintf("%s %d of %d", what, wrong, sample.Calls())
	}
}

// A Table is all rows of a case.
type Table struct {
	Case Case
	Rows []Row
}

// Row returns the row of a limiter, or nil.
func (t *Table) Row(name string) *Row {
	for i := range t.Rows {
		if t.Rows[i].Name == name {
			return &t.Rows[i]
		}
	}
	return nil
}

// Base returns the row of the limiter that all others of the case are compared with, or nil.
func (t *Table) Base() *Row {
	if row := t.Row(limiters.Base); row != nil {
		return row
	}
	return t.Row(limiters.LocalBase)
}

// A Size is how much memory of Redis a limiter's key takes.
type Size struct {
	Name  string
	Bytes []int64 // for each of Fillings
}

// Result is all that was found.
type Result struct {
	Facts  []string // about the machine
	Shared []Table
	Curve  []Table
	Sizes  []Size
	Local  []Table
	Busy   string // the load average afterwards
}

// Faults returns in which cases one of rategen's own limiters did not do what
// it had to. The curve is left out: it has all the same limiters, and in its short
// rounds 2,000 callers may all give up on a machine that does much else.
func (r *Result) Faults() (all []string) {
	for _, tables := range [][]Table{r.Shared, r.Local} {
		for i := range tables {
			for _, row := range tables[i].Rows {
				if row.Own && (row.Fault != "" || row.gaveUp > 0) {
					all = append(all, fmt.Sprintf("%v: %s: %s, no decision on %d calls", tables[i].Case, row.Name, row.Fault, row.gaveUp))
				}
			}
		}
	}
	return all
}
