// Package adaptive makes the max of a rate limit follow how busy a process is:
// more than declared while there is room, less under load.
//
// A directive has the option adaptive=cpu,latency, and generated code:
//
//	Adaptive: adaptive.To(adaptive.CPU, adaptive.Latency),
//
// The max is the declared one times a factor. The factor is 1 while no reading is low or
// high:
//
//	signal   reading                                 highest at  above 1 below  below 1 above  lowest at
//	CPU      used part of the processors             0.1         0.5            0.8            0.95
//	Memory   used part of the memory                 0.12        0.6            0.85           0.96
//	Latency  how long calls take beside their usual  0.15        0.75           2              4
//
// Between these readings the factor of a signal is linear, from one end of the [Band],
// by default 0.5 to 1.5, to 1, and from 1 to the other end: it is 1.25 at 30 % CPU
// and 0.67 at 90 %. The factors of several signals are multiplied, but an idle
// signal does not offset a busy one: a factor above 1 fades as another falls below 1.
//
// Readings are averaged over some eight seconds. The factor then moves in steps
// of 0.05, and only when it is more than 0.075 from what the readings ask for, so
// that it does not oscillate. Each process adapts by itself: with a
// shared limit, one that is busy refuses calls at a count at which the others
// still admit them.
//
// # What is read
//
// CPU is the processor time of this process, as a part of the CPU quota of its
// cgroup or of GOMAXPROCS. Without a quota it is that of the whole machine if
// that is more. Memory is the resident memory of this process as a part of the
// memory limit of its cgroup, and without one the used part of the machine's
// memory. Both are read once a second at most for all rules of the process, and
// only while calls come. A reading that fails counts as a factor of 1, and is
// logged once.
//
// Latency is measured by the generated wrapper, from when a call was let
// through until it returns, errors included; see [rule.Load]. A limit on
// several methods mixes theirs.
package adaptive

import (
	"fmt"
	"math"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A Signal is something to adapt to.
type Signal uint8

const (
	CPU Signal = iota
	Memory
	Latency
	signals
)

// String returns the signal as the directive spells it.
func (s Signal) String() string {
	switch s {
	case CPU:
		return "cpu"
	case Memory:
		return "memory"
	case Latency:
		return "latency"
	}
	return fmt.Sprintf("Signal(%d)", uint8(s))
}

// An Option is a [Signal] or one of what the functions of this package return.
type Option interface{ apply(*scaler) }

func (s Signal) apply(to *scaler) {
	if s < signals {
		to.by[s] = true
	}
}

type option func(*scaler)

func (o option) apply(to *scaler) { o(to) }

// Band sets the ends of the factor: low, from 0.01 to 1, is what it comes
// down to under full load, and high, from 1 to 100, what it goes up to when
// nothing happens. They are factors and no percentages: 0.5 and 1.5. It panics if one is out
// of these bounds.
func Band(low, high float64) Option {
	if !(low >= 0.01 && low <= 1 && high >= 1 && high <= 100) {
		panic(fmt.Sprintf("adaptive: Band(%v, %v): the factor comes down to low, from 0.01 to 1, and goes up to high, from 1 to 100", low, high))
	}
	return option(func(s *scaler) { s.low, s.high = low, high })
}

// Thresholds sets below which reading of a signal the factor is above 1, and
// above which it is below 1. They are parts from 0 to 1 of the processors and
// the memory, and for the latency multiples of the usual one or of the [Target].
// The factor is highest at a fifth of idle, and lowest three quarters of the way
// from busy to 1, or for the latency at twice busy. With an idle of 0 it is never
// above 1.
func Thresholds(signal Signal, idle, busy float64) Option {
	return option(func(s *scaler) {
		if signal == Latency {
			busy = clamp(0.01, busy, 1000)
			s.curves[Latency] = multiple(clamp(0, idle, busy), busy)
		} else if signal < signals {
			busy = clamp(0.01, busy, 0.99)
			s.curves[signal] = share(clamp(0, idle, busy), busy)
		}
	})
}

// Target is how long calls ought to take at most. It takes the place of how
// long they usually take: with [Latency], the factor is below 1 when they take
// longer, lowest when twice as long, and above 1 when less than half as long.
func Target(d time.Duration) Option {
	return option(func(s *scaler) { s.target = max(0, d) })
}

// To returns a scaler that adapts to the signals among its options, all of
// which may be left out. Without a signal it adapts each rule to those that the
// rule itself names, so that [runtime.WithScaler] gives all rules another band:
//
//	runtime.WithScaler(adaptive.To(adaptive.Band(0.3, 1)))
func To(opts ...Option) rule.Scaler {
	s := &scaler{low: 0.5, high: 1.5, read: readings}
	for _, o := range opts {
		o.apply(s)
	}
	return s
}

// A scaler adapts rules to signals.
type scaler struct {
	by        [signals]bool
	curves    [signals]curve // a zero one is the default
	target    time.Duration  // of the latency; 0: the usual one
	low, high float64
	read      [signals]*gauge // nil where there is nothing to share
}

// Factor implements [rule.Scaler].
func (s *scaler) Factor(load rule.Load) float64 {
	lower, raise := 1.0, 1.0
	for signal, on := range s.signals(load.Rule) {
		if !on {
			continue
		}
		reading, known := s.reading(Signal(signal), load)
		if !known {
			continue
		}
		f := s.curve(Signal(signal)).factor(reading, s.low, s.high)
		lower, raise = lower*min(f, 1), raise*max(f, 1)
	}
	return settle(load.Factor, lower*faded(raise, lower), s.low, s.high)
}

// signals returns which signals a rule is to adapt to.
func (s *scaler) signals(r *runtime.Rule) [signals]bool {
	if s.by == [signals]bool{} && r != nil {
		if own, ok := r.Adaptive.(*scaler); ok {
			return own.by
		}
	}
	return s.by
}

// reading returns the reading of a signal, if there is one.
func (s *scaler) reading(signal Signal, load rule.Load) (float64, bool) {
	if g := s.read[signal]; g != nil {
		return g.load()
	}
	beside := s.target
	if beside == 0 {
		beside = load.Usual
	}
	return float64(load.Latency) / float64(beside), load.Latency > 0 && beside > 0
}

func (s *scaler) curve(signal Signal) curve {
	c := s.curves[signal]
	switch {
	case c != curve{}:
		return c
	case signal == CPU:
		return share(0.5, 0.8)
	case signal == Memory:
		return share(0.6, 0.85)
	case s.target > 0:
		return multiple(0.5, 1)
	}
	return multiple(0.75, 2)
}

// clamp returns the value from low to high that is nearest to x.
func clamp(low, x, high float64) float64 {
	if math.IsNaN(x) {
		return low
	}
	return max(low, min(x, high))
}
