// Package load lets callers ask a limiter as fast as it answers, and measures
// what that costs.
package load

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// An Answer is what a limiter says to one call.
type Answer uint8

const (
	Admitted Answer = iota
	Refused
	// Recalled is a refusal that the limiter knew of by itself: its store was
	// not asked.
	Recalled
	// Failed means that there was no decision.
	Failed
	answers
)

// A Take asks a limiter about one call on a key.
type Take func(ctx context.Context, key string) Answer

// Callers are goroutines that ask one after the other, each without a pause.
type Callers struct {
	Count int
	Keys  []string
	// Time is which calls to time: every call if it is 1, every second if it is
	// 2, none if it is 0. Looking at the clock takes time itself.
	Time int
}

// A Sample is what came of asking for some time.
type Sample struct {
	Elapsed time.Duration
	Answers [answers]int64
	Times   []time.Duration // of the calls that were timed, ascending
}

// Quantile returns the time that a share q of those that were timed, from 0 to 1, does not exceed.
// It is 0 if none was.
func (s *Sample) Quantile(q float64) time.Duration {
	if len(s.Times) == 0 {
		return 0
	}
	return s.Times[max(0, int(math.Ceil(q*float64(len(s.Times))))-1)]
}

// Calls returns how many calls were made.
func (s *Sample) Calls() int64 {
	var n int64
	for _, count := range s.Answers {
		n += count
	}
	return n
}

// Decisions returns how many calls were decided.
func (s *Sample) Decisions() int64 { return s.Calls() - s.Answers[Failed] }

// A caller is one goroutine's part of a sample.
type caller struct {
	answers [answers]int64
	times   []time.Duration
	_       [64]byte // so that no two callers write to one cache line
}

// Run lets the callers ask for a time and returns when all have their last
// answer. Each goes through all keys in turn, from another one on.
func (c Callers) Run(ctx context.Context, d time.Duration, take Take) *Sample {
	callers := make([]caller, c.Count)
	var (
		ready, done sync.WaitGroup
		stop        atomic.Bool
		begin       = make(chan struct{})
	)
	ready.Add(c.Count)
	first := rand.IntN(len(c.Keys))
	for i := range callers {
		done.Go(func() {
			// A request has a context of its own.
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			ready.Done()
			<-begin
			c.ask(ctx, &callers[i], (first+i*len(c.Keys)/c.Count)%len(c.Keys), &stop, take)
		})
	}
	ready.Wait()
	var sample Sample
	start := time.Now()
	close(begin)
	time.Sleep(d)
	stop.Store(true)
	done.Wait()
	sample.Elapsed = time.Since(start)
	for i := range callers {
		for answer, n := range callers[i].answers {
			sample.Answers[answer] += n
		}
		sample.Times = append(sample.Times, callers[i].times...)
	}
	slices.Sort(sample.Times)
	return &sample
}

func (c Callers) ask(ctx context.Context, mine *caller, next int, stop *atomic.Bool, take Take) {
	begin := time.Now()
	for untimed := 1; !stop.Load(); untimed++ {
		key := c.Keys[next]
		if next++; next == len(c.Keys) {
			next = 0
		}
		if untimed != c.Time {
			mine.answers[take(ctx, key)]++
			continue
		}
		untimed = 0
		start := time.Since(begin)
		answer := take(ctx, key)
		mine.times = append(mine.times, time.Since(begin)-start)
		mine.answers[answer]++
	}
}
