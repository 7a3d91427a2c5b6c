package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// simulate returns the records of a run over the memory store in fake time.
func simulate(t *testing.T, name string, limits []limit) []record {
	t.Helper()
	var records []record
	synctest.Test(t, func(t *testing.T) {
		store := runtime.NewMemoryStore()
		batch := newBatch(limits)
		for range 2000 {
			batch.fill(1+rand.IntN(maxBatch), time.Now())
			output, err := batch.take(context.Background(), store)
			if err != nil {
				t.Fatal(err)
			}
			for ; len(output) > 0; output = output[recordSize:] {
				var r record
				r.parse(output)
				records = append(records, r)
			}
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
			limits := newLimits(name, len(shapes))
			good := simulate(t, name, limits)
			result, err := sweep(name, limits, slices.Clone(good))
			if err != nil {
				t.Fatal(err)
			}
			if !result.ok() {
				t.Fatalf("%+v, the first fault is %+v", result, result.first)
			}
			if result.admitted == 0 || result.admitted == result.decisions {
				t.Fatalf("%d of %d admitted", result.admitted, result.decisions)
			}
			for _, tamper := range []struct {
				name   string
				change func(*record) bool // reports whether there was something to change
				want   fault
			}{
				{"denied to admitted", func(r *record) bool {
					admit := r.Admitted == 0
					r.Admitted, r.At, r.Wait = 1, r.Clock, 0
					return admit
				}, over},
				{"admitted to denied", func(r *record) bool {
					deny := r.Admitted == 1
					r.Admitted, r.At, r.Wait = 0, 0, 1
					return deny
				}, spurious},
				{"retry too late", func(r *record) bool {
					r.Wait += 100_000
					return r.Admitted == 0
				}, wrong},
				{"a time before", func(r *record) bool {
					r.At -= 2
					return r.Admitted == 1 && r.At < r.Clock
				}, wrong},
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
						result, err := sweep(name, limits, bad)
						if err != nil {
							t.Fatal(err)
						}
						if result.first != nil && result.first.Order == changed.Order && result.fault&tamper.want != 0 {
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
	limits := newLimits("list", 2)
	good := simulate(t, "list", limits)
	// Half way, and not the last call of its batch.
	half := len(good) / 2
	for good[half].batch() != good[half+1].batch() {
		half++
	}
	batch := good[half].batch()
	for name, bad := range map[string][]record{
		"the first":   good[1:],
		"one":         slices.Delete(slices.Clone(good), half, half+1),
		"twice":       slices.Insert(slices.Clone(good), half, good[half]),
		"whole batch": slices.DeleteFunc(slices.Clone(good), func(r record) bool { return r.batch() == batch }),
	} {
		if _, err := sweep("list", limits, slices.Clone(bad)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
