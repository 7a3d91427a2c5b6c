package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/rategen/rategen/bench/internal/judge"
)

// A tamper makes of decisions that are right ones that are not, which a sweep must find.
type tamper[R any] struct {
	name   string
	change func(*R) bool // reports whether there was something to change
	want   judge.Fault
}

var tampers = []tamper[judge.Record]{
	{"refused to admitted", func(r *judge.Record) bool {
		admit := r.Admitted == 0
		r.Admitted, r.At, r.Wait = 1, r.Clock, 0
		return admit
	}, judge.Over},
	{"admitted to refused", func(r *judge.Record) bool {
		refuse := r.Admitted == 1
		r.Admitted, r.At, r.Wait = 0, 0, 1
		return refuse
	}, judge.Spurious},
	{"retry too late", func(r *judge.Record) bool {
		r.Wait += 100_000
		return r.Admitted == 0
	}, judge.Wrong},
	{"a time before", func(r *judge.Record) bool {
		r.At -= 2
		return r.Admitted == 1
	}, judge.Wrong},
}

var sharedTampers = []tamper[judge.SharedRecord]{
	{"admitted without room", func(r *judge.SharedRecord) bool {
		admit := r.At == 0
		r.At, r.Wait = r.Start, 0
		return admit
	}, judge.Over},
	{"more left, as if a charge before were lost", func(r *judge.SharedRecord) bool {
		r.Left++
		return r.At != 0
	}, judge.Wrong},
	{"a refusal long before", func(r *judge.SharedRecord) bool {
		r.Start, r.End = 1, 2
		return r.At == 0
	}, judge.Spurious},
	{"retry too late", func(r *judge.SharedRecord) bool {
		r.Wait += time.Second
		return r.At == 0
	}, judge.Wrong},
	{"a recalled refusal for too long", func(r *judge.SharedRecord) bool {
		r.Recalled, r.Wait = 1, r.Wait+time.Minute
		return r.At == 0
	}, judge.Wrong},
}

// proven returns what a sweep finds. If that is nothing it tampers with the decisions, and
// returns an error unless the sweep finds out. A counter may decide otherwise on the edge of a
// bucket, so several are changed.
func proven[R any](tampers []tamper[R], records []R, sweep func([]R) (*judge.Result, error)) (*judge.Result, error) {
	const every, enough = 50, 20
	result, err := sweep(records)
	if err != nil || !result.OK() {
		return result, err
	}
	for _, t := range tampers {
		bad, changed := slices.Clone(records), 0
		for i := 0; i < len(bad); i += every {
			r := bad[i]
			if t.change(&r) {
				bad[i] = r
				changed++
			}
		}
		tampered, err := sweep(bad)
		if err != nil {
			return nil, err
		}
		if changed >= enough && !tampered.Has(t.want) {
			return nil, fmt.Errorf("the sweep does not find %q, done to %d decisions", t.name, changed)
		}
	}
	return result, nil
}

// proveLost leaves decisions out or makes them twice, and returns an error unless the sweep finds out.
// It wants them in their order.
func proveLost(records []judge.Record, sweep func([]judge.Record) (*judge.Result, error)) error {
	if len(records) < 20*judge.MaxBatch {
		return nil
	}
	half := len(records) / 2
	for records[half].Batch() != records[half+1].Batch() {
		half++ // not the last call of its batch
	}
	batch := records[half].Batch()
	for name, bad := range map[string][]judge.Record{
		"the first is lost": slices.Clone(records[1:]),
		"one is lost":       slices.Delete(slices.Clone(records), half, half+1),
		"one comes twice":   slices.Insert(slices.Clone(records), half, records[half]),
		"a batch is lost":   slices.DeleteFunc(slices.Clone(records), func(r judge.Record) bool { return r.Batch() == batch }),
	} {
		if _, err := sweep(bad); err == nil {
			return fmt.Errorf("the sweep does not find that %s", name)
		}
	}
	return nil
}
