package ratepage

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/ratetally"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// The columns of a rule's counts.
const (
	admitted  = iota
	refused   // by the store, a remembered refusal, or this process
	shadow    // had no room, but the limit only counts
	undecided // by the failure policy, since nothing else could
	columns
)

// column returns where a decision is counted, and false for a limit that had room
// in a call which another limit refused.
func column(verdict observe.Verdict, source rule.Source) (int, bool) {
	if verdict == observe.VerdictUnavailable || source == rule.SourceFailure {
		return undecided, true
	}
	if verdict == observe.VerdictAdmitted {
		return admitted, true
	}
	if verdict == observe.VerdictRefused {
		return refused, true
	}
	if verdict == observe.VerdictShadowRefused {
		return shadow, true
	}
	return 0, false
}

// counts are those of all rules, since the program started. One goroutine at a time
// takes samples.
type counts struct {
	tally *ratetally.Tally
	last  map[ratetally.Rule][columns]uint64 // of the last sample
}

func newCounts() counts { return counts{ratetally.New(), make(map[ratetally.Rule][columns]uint64)} }

// calls returns how many decisions there were of each rule, at the last sample.
func (c *counts) calls() map[string]int64 {
	calls := make(map[string]int64, len(c.last))
	for declared, n := range c.last {
		for _, made := range n {
			calls[declared.Label()] += int64(made)
		}
	}
	return calls
}

// sample returns the calls of each rule since the last sample, and those of all
// since the program started.
func (c *counts) sample() (rows []row, totals [columns]uint64) {
	for _, declared := range c.tally.Rules() {
		var n [columns]uint64
		declared.Decisions(func(verdict observe.Verdict, source rule.Source, made uint64) {
			if column, ok := column(verdict, source); ok {
				n[column] += made
			}
		})
		r := row{Name: declared.Label(), Waiting: declared.Waiting(), HeldMS: milliseconds(declared.Held())}
		last := c.last[declared]
		for i := range n {
			r.N[i] = n[i] - last[i]
			totals[i] += n[i]
		}
		c.last[declared] = n
		if n != last || r.Waiting > 0 || r.HeldMS > 0 {
			rows = append(rows, r)
		}
	}
	return rows, totals
}

// latencyBuckets cover 1 µs to more than an hour: 4 for each power of two, so that
// a percentile is wrong by at most a fifth.
const latencyBuckets = 128

// latencyWindow is over how many samples percentiles are taken.
const latencyWindow = 10

// A latencies counts how long decisions of the store took.
type latencies struct {
	n [latencyBuckets]atomic.Uint64

	// One goroutine at a time takes samples.
	samples [latencyWindow + 1][latencyBuckets]uint64 // of n; the one behind the last is the oldest
	at      int                                       // of the last
}

func (l *latencies) add(took time.Duration) { l.n[latencyBucket(took)].Add(1) }

// latencyBucket returns the bucket of a time: its highest bit, and the two below.
func latencyBucket(took time.Duration) int {
	us := uint64(max(took.Microseconds(), 0))
	if us < 4 {
		return int(us)
	}
	top := bits.Len64(us) - 1
	return min(4*(top-1)+int(us>>(top-2)&3), latencyBuckets-1)
}

// bucketStart returns the shortest time in a bucket, in microseconds.
func bucketStart(bucket int) float64 {
	if bucket < 4 {
		return float64(bucket)
	}
	return float64(uint64(4+bucket%4) << (bucket/4 - 1))
}

// sample has the calls up to now be the last ones of the window.
func (l *latencies) sample() {
	l.at = (l.at + 1) % len(l.samples)
	for i := range l.n {
		l.samples[l.at][i] = l.n[i].Load()
	}
}

// restart forgets all samples.
func (l *latencies) restart() {
	for range l.samples {
		l.sample()
	}
}

type latencyView struct {
	Calls uint64  `json:"calls"`
	P50   float64 `json:"p50_us"`
	P95   float64 `json:"p95_us"`
	P99   float64 `json:"p99_us"`
}

func (l *latencies) view() latencyView {
	var v latencyView
	sum, oldest := l.samples[l.at], &l.samples[(l.at+1)%len(l.samples)]
	for i := range sum {
		sum[i] -= oldest[i]
		v.Calls += sum[i]
	}
	if v.Calls == 0 {
		return v
	}
	for _, p := range []struct {
		share float64
		to    *float64
	}{{0.5, &v.P50}, {0.95, &v.P95}, {0.99, &v.P99}} {
		rank, seen := uint64(p.share*float64(v.Calls-1)), uint64(0)
		for i, n := range sum {
			if seen += n; seen > rank {
				*p.to = (bucketStart(i) + bucketStart(i+1)) / 2
				break
			}
		}
	}
	return v
}
