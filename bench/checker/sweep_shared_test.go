package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// simulateShared returns the records of callers over the memory store in fake
// time.
func simulateShared(t *testing.T, name string, limits []limit) []judge.SharedRecord {
	t.Helper()
	var records []judge.SharedRecord
	synctest.Test(t, func(t *testing.T) {
		store := runtime.NewMemoryStore()
		slow := takerFunc(func(ctx context.Context, calls []rawstore.Call) error {
			time.Sleep(rand.N(40 * time.Microsecond))
			defer func() { time.Sleep(rand.N(40 * time.Microsecond)) }()
			return rawstore.Wrap(store).Take(ctx, calls)
		})
		s := &share{limits: limits, write: func(output []byte) error {
			records = judge.Parse(records, output)
			return nil
		}}
		s.left.Store(20_000)
		if err := new(worker).callShared(t.Context(), slow, s); err != nil {
			t.Fatal(err)
		}
	})
	return records
}

type takerFunc func(context.Context, []rawstore.Call) error

func (f takerFunc) Take(ctx context.Context, calls []rawstore.Call) error { return f(ctx, calls) }

// TestSweepShared wants the sweep to find nothing in decisions that are right,
// and what is wrong with one that is not.
func TestSweepShared(t *testing.T) {
	for name, algorithm := range algorithms {
		if algorithm.history == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			limits := newLimits(name, config{keys: 4})
			good := simulateShared(t, name, limits)
			if result := judge.SweepShared(algorithm.history, rulesOf(limits), slices.Clone(good)); !result.OK() || result.Admitted == 0 || result.Admitted == len(good) {
				t.Fatalf("%+v, the first fault is %+v", result, result.First)
			}
			for _, tamper := range []struct {
				name   string
				change func(*judge.SharedRecord) bool // reports whether there was something to change
				want   func(*judge.Result) bool
			}{
				{"admitted without room", func(r *judge.SharedRecord) bool {
					r.At, r.Wait = r.Start, 0
					return true
				}, func(r *judge.Result) bool { return r.Over > 0 || r.Wrong > 0 }},
				{"a charge nobody was told of", func(r *judge.SharedRecord) bool {
					charged := r.At != 0 && r.Left > 0 // the next charge of its window finds less
					r.At, r.Wait = 0, time.Millisecond
					return charged
				}, func(r *judge.Result) bool { return r.Wrong > 0 }},
				{"a refusal long before", func(r *judge.SharedRecord) bool {
					r.Start, r.End = 1, 2
					return r.At == 0
				}, func(r *judge.Result) bool { return r.Spurious > 0 }},
				{"retry too late", func(r *judge.SharedRecord) bool {
					r.Wait += time.Second
					return r.At == 0
				}, func(r *judge.Result) bool { return r.Wrong > 0 }},
				{"a recalled refusal for too long", func(r *judge.SharedRecord) bool {
					r.Recalled, r.Wait = 1, r.Wait+time.Second
					return r.At == 0
				}, func(r *judge.Result) bool { return r.Wrong > 0 }},
			} {
				bad := slices.Clone(good)
				i := len(bad) / 2
				for changed := bad[i]; ; changed = bad[i] {
					if (changed.At == 0 || tamper.name == "a charge nobody was told of") && tamper.change(&changed) {
						bad[i] = changed
						break
					}
					i++
				}
				if result := judge.SweepShared(algorithm.history, rulesOf(limits), bad); !tamper.want(result) {
					t.Errorf("%s: got %+v", tamper.name, result)
				}
			}
		})
	}
}
