package main

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sort"
	"sync"
	"time"
)

// A fault is what a decision has done wrong.
type fault uint8

const (
	over     fault = 1 << iota // admitted without room
	spurious                   // denied in spite of room
	wrong                      // at a time, or with a wait, that it should not have
)

// A checker follows one key. It is given the key's decisions in the order in
// which they were made and says what is wrong with each. The next decision is
// judged by what was admitted in fact, be it right or wrong.
type checker interface {
	next(r *record) fault
}

// A result is what a sweep found.
type result struct {
	decisions, admitted, over, spurious, wrong int

	backwards int           // how often the clock of Redis stepped back
	first     *record       // the first decision with a fault
	fault     fault         // what it is
	gap       time.Duration // from the first fault's batch to the next batch
	batches   int           // how many batches have faults
	recalled  int           // denials that a process gave by itself
	notes     []string      // about keys that hold another sum than they should
	faulty    map[int64]bool
}

func (r *result) ok() bool { return r.over == 0 && r.spurious == 0 && r.wrong == 0 }

func (r *result) count(record *record, f fault) {
	r.decisions++
	r.admitted += int(record.Admitted)
	if f == 0 {
		return
	}
	if r.faulty == nil {
		r.faulty = make(map[int64]bool)
	}
	r.faulty[record.batch()] = true
	if r.first == nil || record.Order < r.first.Order {
		r.first, r.fault = record, f
	}
	if f&over != 0 {
		r.over++
	}
	if f&spurious != 0 {
		r.spurious++
	}
	if f&wrong != 0 {
		r.wrong++
	}
}

func (r *result) add(o *result) {
	r.decisions += o.decisions
	r.admitted += o.admitted
	r.over += o.over
	r.spurious += o.spurious
	r.wrong += o.wrong
	r.backwards += o.backwards
	r.recalled += o.recalled
	if o.first != nil && (r.first == nil || o.first.Order < r.first.Order) {
		r.first, r.fault = o.first, o.fault
	}
}

// sweep judges all decisions of a run. The error says that the records
// themselves are incomplete.
func sweep(name string, limits []limit, records []record) (*result, error) {
	slices.SortFunc(records, func(a, b record) int { return cmp.Compare(a.Order, b.Order) })
	total := new(result)
	keys := make([][]*record, len(limits))
	for i := range records {
		r := &records[i]
		if err := follows(records, i); err != nil {
			return nil, err
		}
		if i > 0 && r.Clock < records[i-1].Clock {
			total.backwards++
		}
		keys[r.Limit] = append(keys[r.Limit], r)
	}
	results := make([]result, len(limits))
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for i := range limits {
		wait.Go(func() {
			turns <- struct{}{}
			check := algorithms[name].check(&limits[i].rule)
			for _, r := range keys[i] {
				results[i].count(r, check.next(r))
			}
			<-turns
		})
	}
	wait.Wait()
	batches := make(map[int64]bool)
	for i := range results {
		total.add(&results[i])
		maps.Copy(batches, results[i].faulty)
	}
	total.batches = len(batches)
	if total.first != nil {
		total.gap = gapAfter(records, total.first)
	}
	return total, nil
}

// gapAfter returns the time from a record's batch to the one after it.
func gapAfter(records []record, r *record) time.Duration {
	i := sort.Search(len(records), func(i int) bool { return records[i].batch() > r.batch() })
	if i == len(records) {
		return 0
	}
	return time.Duration(records[i].Clock-r.Clock) * time.Microsecond
}

// follows returns an error if the i-th record is not the one after its
// predecessor: batches are numbered from 1 and calls in a batch from 0.
func follows(records []record, i int) error {
	want := [2]uint64{orderOf(1, 0)}
	if i > 0 {
		want[0] = records[i-1].Order + 1
		want[1] = orderOf(records[i-1].batch()+1, 0)
	}
	if got := records[i].Order; got != want[0] && got != want[1] {
		return fmt.Errorf("record %d is call %d of batch %d, and the calls before it are missing or were made twice", i, got%span, records[i].batch())
	}
	return nil
}
