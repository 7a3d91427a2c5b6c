// Package judge checks recorded decisions: it computes anew what each limit held, and trusts
// nothing that a limiter says about itself.
package judge

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rategen/rategen/runtime"
)

// A Fault is what a decision has done wrong.
type Fault uint8

// The faults.
const (
	Over     Fault = 1 << iota // admitted without room
	Spurious                   // refused in spite of room
	Wrong                      // at a time, or with a wait, that it should not have
)

// A Checker follows one key. It is given the key's decisions in the order in
// which they were made and says what is wrong with each. The next decision is
// judged by what was admitted in fact, be it right or wrong.
type Checker interface {
	next(r *Record) Fault
}

// A Result is what a sweep found.
type Result struct {
	Decisions, Admitted, Over, Spurious, Wrong int

	Backwards int      // how often the clock of Redis stepped back
	First     *Record  // the first decision with a fault
	Recalled  int      // decisions that a process made by itself
	Notes     []string // about keys that hold another sum than they should
}

// OK reports whether no decision has a fault.
func (r *Result) OK() bool { return r.Over == 0 && r.Spurious == 0 && r.Wrong == 0 }

// Has reports whether one of some faults was found.
func (r *Result) Has(f Fault) bool {
	return f&Over != 0 && r.Over > 0 || f&Spurious != 0 && r.Spurious > 0 || f&Wrong != 0 && r.Wrong > 0
}

// Count counts a decision and what is wrong with it.
func (r *Result) Count(record *Record, f Fault) {
	r.Decisions++
	r.Admitted += int(record.Admitted)
	if f != 0 && (r.First == nil || record.Order < r.First.Order) {
		r.First = record
	}
	if f&Over != 0 {
		r.Over++
	}
	if f&Spurious != 0 {
		r.Spurious++
	}
	if f&Wrong != 0 {
		r.Wrong++
	}
}

// Add adds what another sweep found.
func (r *Result) Add(o *Result) {
	r.Decisions += o.Decisions
	r.Admitted += o.Admitted
	r.Over += o.Over
	r.Spurious += o.Spurious
	r.Wrong += o.Wrong
}

// Sweep judges all decisions of a run, and puts them in order. The error says that the records
// themselves are incomplete.
func Sweep(check func(*runtime.Rule) Checker, rules []*runtime.Rule, records []Record) (*Result, error) {
	slices.SortFunc(records, func(a, b Record) int { return cmp.Compare(a.Order, b.Order) })
	checks := make([]Checker, len(rules))
	for i, rule := range rules {
		checks[i] = check(rule)
	}
	total := new(Result)
	for i := range records {
		r := &records[i]
		if err := follows(records, i); err != nil {
			return nil, err
		}
		if i > 0 && r.Clock < records[i-1].Clock {
			total.Backwards++
		}
		total.Count(r, checks[r.Limit].next(r))
	}
	return total, nil
}

// follows returns an error if the i-th record is not the one after its
// predecessor: batches are numbered from 1 and calls in a batch from 0.
func follows(records []Record, i int) error {
	want := [2]uint64{OrderOf(1, 0)}
	if i > 0 {
		want[0] = records[i-1].Order + 1
		want[1] = OrderOf(records[i-1].Batch()+1, 0)
	}
	if got := records[i].Order; got != want[0] && got != want[1] {
		return fmt.Errorf("record %d is call %d of batch %d, and the calls before it are missing or were made twice", i, got%span, records[i].Batch())
	}
	return nil
}
