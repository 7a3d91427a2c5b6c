package main

import (
	"slices"
	"time"

	"github.com/rategen/rategen/bench/internal/load"
)

// A judge takes down how every call was answered, and says afterwards how far that
// was from an ideal limit.
type judge struct {
	plan
	passed  [][]passage // by key: calls that went on
	denied  [][]time.Duration
	results [3]int // by outcome
	local   int    // calls that were answered without a request
	took    load.Histogram
}

// A passage is a call that went on.
type passage struct {
	at        time.Duration
	undecided bool
}

// The outcomes of a call.
const (
	admitted = iota
	refused
	undecided
)

func newJudge(keys int, p plan) *judge {
	return &judge{plan: p, passed: make([][]passage, keys), denied: make([][]time.Duration, keys)}
}

// charged notes that a call on a key was charged at a time, and goes on.
func (j *judge) charged(key int, at time.Duration) {
	j.passed[key] = append(j.passed[key], passage{at, false})
}

// lost notes that a charge was in vain: its caller had given up before.
func (j *judge) lost(key int, at time.Duration) {
	for i := len(j.passed[key]) - 1; i >= 0; i-- {
		if j.passed[key][i] == (passage{at, false}) {
			j.passed[key] = slices.Delete(j.passed[key], i, i+1)
			return
		}
	}
}

func (j *judge) admitted(took time.Duration) { j.answered(admitted, took) }

func (j *judge) refused(key int, at, took time.Duration) {
	j.denied[key] = append(j.denied[key], at)
	j.answered(refused, took)
}

func (j *judge) undecided(key int, at, took time.Duration) {
	j.passed[key] = append(j.passed[key], passage{at, true})
	j.answered(undecided, took)
}

func (j *judge) answered(result int, took time.Duration) {
	j.results[result]++
	if took == 0 {
		j.local++
	}
	j.took.Add(took)
}

// A verdict is how far the answers of some keys were from an ideal limit.
type verdict struct {
	most     int64 // calls that went on in one window
	refused  int
	needless int // calls that were refused while the window had room
}

// verdictOf judges the keys that count.
func (j *judge) verdictOf(counts func(key int) bool) (v verdict) {
	for key, passed := range j.passed {
		if !counts(key) {
			continue
		}
		slices.SortFunc(passed, func(a, b passage) int { return int(a.at - b.at) })
		slices.Sort(j.denied[key])
		first := 0
		for i := range passed {
			for passed[first].at <= passed[i].at-j.Window {
				first++
			}
			v.most = max(v.most, int64(i-first+1))
		}
		from, to := 0, 0
		for _, at := range j.denied[key] {
			for to < len(passed) && passed[to].at <= at {
				to++
			}
			for from < to && passed[from].at <= at-j.Window {
				from++
			}
			v.refused++
			if int64(to-from) < j.Max {
				v.needless++
			}
		}
	}
	return v
}
