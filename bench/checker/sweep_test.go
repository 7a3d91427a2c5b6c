package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// simulate returns the records of a run over the memory store in fake time.
func simulate(t *testing.T, name string, limits []limit) []judge.Record {
	t.Helper()
	var records []judge.Record
	synctest.Test(t, func(t *testing.T) {
		store := runtime.NewMemoryStore()
		batch := newBatch(limits)
		for range 2000 {
			batch.fill(1+rand.IntN(judge.MaxBatch), time.Now())
			output, err := batch.take(context.Background(), rawstore.Wrap(store))
			if err != nil {
				t.Fatal(err)
			}
			records = judge.Parse(records, output)
			time.Sleep(time.Duration(rand.Int64N(1500)) * time.Microsecond)
		}
	})
	return records
}

// TestSweep wants the sweep to find nothing in decisions that are right, and
// exactly what is wrong with one that is not.
func TestSweep(t *testing.T) {
	for name, algorithm := range algorithms {
		if algorithm.check == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			limits := newLimits(name, config{keys: len(shapes)})
			good := simulate(t, name, limits)
			result, err := judge.Sweep(algorithm.check, rulesOf(limits), slices.Clone(good))
			if err != nil {
				t.Fatal(err)
			}
			if !result.OK() {
				t.Fatalf("%+v, the first fault is %+v", result, result.First)
			}
			if result.Admitted == 0 || result.Admitted == result.Decisions {
				t.Fatalf("%d of %d admitted", result.Admitted, result.Decisions)
			}
			for _, tamper := range []struct {
				name   string
				change func(*judge.Record) bool // reports whether there was something to change
				want   judge.Fault
			}{
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
					return r.Admitted == 1 && r.At < r.Clock
				}, judge.Wrong},
			} {
				t.Run(tamper.name, func(t *testing.T) {
					// A counter is free to decide otherwise where a bucket is
					// on the edge, so not every decision will do.
					tries := 1
					if strings.HasPrefix(name, "counter") {
						tries = 200
					}
					for i := len(good) / 2; i < len(good) && tries > 0; i++ {
						changed := good[i]
						if !tamper.change(&changed) {
							continue
						}
						bad := slices.Clone(good)
						bad[i] = changed
						result, err := judge.Sweep(algorithm.check, rulesOf(limits), bad)
						if err != nil {
							t.Fatal(err)
						}
						if result.First != nil && result.First.Order == changed.Order && result.Fault&tamper.want != 0 {
							return
						}
						tries--
					}
					if tries == 0 {
						t.Error("not found")
					} else {
						t.Skip("no such decision")
					}
				})
			}
		})
	}
}

// TestSweepLost wants the sweep to notice that decisions are missing, or were
// made twice.
func TestSweepLost(t *testing.T) {
	limits := newLimits("packed", config{keys: 2})
	good := simulate(t, "packed", limits)
	// Half way, and not the last call of its batch.
	half := len(good) / 2
	for good[half].Batch() != good[half+1].Batch() {
		half++
	}
	batch := good[half].Batch()
	for name, bad := range map[string][]judge.Record{
		"the first":   good[1:],
		"one":         slices.Delete(slices.Clone(good), half, half+1),
		"twice":       slices.Insert(slices.Clone(good), half, good[half]),
		"whole batch": slices.DeleteFunc(slices.Clone(good), func(r judge.Record) bool { return r.Batch() == batch }),
	} {
		if _, err := judge.Sweep(algorithms["packed"].check, rulesOf(limits), slices.Clone(bad)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
