package main

import (
	"time"

	"github.com/rategen/rategen/runtime"
)

// These are the times and bounds of a process, as package runtime documents them.
const (
	timeout      = runtime.DefaultTimeout      // of a call
	trusted      = runtime.DefaultDenialMemory // of a denial
	silence      = 200 * time.Millisecond      // that opens the circuit breaker,
	minFailures  = 3                           // with so many requests without an answer
	probeEvery   = 200 * time.Millisecond
	baseInFlight = 2   // requests at a time to a shard
	maxKeys      = 128 // in a request
	leaseShare   = 8   // of what is left of a limit: how much a process leases at most
	leaseLeast   = 4   // units that are worth a lease
)

// A process makes calls, and shares requests between them.
type process struct {
	links   []link // by shard
	denials map[int]denial
	leases  map[int]*lease
}

// A denial is what a process remembers of one.
type denial struct{ until, fits time.Duration }

// A link is the way of a process to a shard.
type link struct {
	waiting  []call
	inFlight int
	failing  bool // the last request was overdue

	failures int           // in a row
	first    time.Duration // when the first of them was sent
	open     bool          // the circuit breaker is
	probe    time.Duration // when the next call may try
}

// A call is one that waits for an answer, or a process's own for a lease.
type call struct {
	at    time.Duration
	key   int
	units int64 // of a lease; 0: of a call
}

// A lease is units that a process may admit calls from, of one key.
type lease struct {
	left    int64
	end     time.Duration
	charged time.Duration // when
	low     int64         // how few are left when more are asked for
	asking  bool
	room    int64 // of the limit, by the last answer

	usage       [2]int64 // in the period before and in this one
	periodBegan time.Duration
}

// use notes that units were used.
func (l *lease) use(n int64, now, period time.Duration) {
	l.turn(now, period)
	l.usage[1] += n
}

func (l *lease) turn(now, period time.Duration) {
	switch age := now - l.periodBegan; {
	case age >= 2*period:
		l.usage, l.periodBegan = [2]int64{}, now
	case age >= period:
		l.usage, l.periodBegan = [2]int64{l.usage[1], 0}, l.periodBegan+period
	}
}

// wanted returns how many units to ask for, or 0 if that is not worth a lease.
func (l *lease) wanted(now, period time.Duration) int64 {
	l.turn(now, period)
	part := 1 - float64(now-l.periodBegan)/float64(period)
	lately := l.usage[1] + int64(part*float64(l.usage[0]))
	n := min(lately-lately/4, l.room/leaseShare, runtime.MaxLogCost)
	if n < leaseLeast {
		return 0
	}
	return n
}

// answered notes that a request has had its answer in time.
func (l *link) answered(probe bool) {
	l.failures, l.failing = 0, false
	if probe {
		l.open = false
	}
}

// overdue notes that a request which was sent at a time has had no answer in time.
func (l *link) overdue(sent, now time.Duration, probe bool) {
	l.failing = true
	if l.inFlight > 0 {
		l.inFlight--
	}
	switch {
	case probe:
		l.probe = now + probeEvery
	case !l.open:
		if l.failures++; l.failures == 1 {
			l.first = sent
		}
		if l.failures >= minFailures && now-l.first >= silence {
			l.open, l.failures, l.probe = true, 0, now+probeEvery
		}
	}
}

// free reports whether another request may be sent.
func (l *link) free() bool {
	return l.inFlight == 0 || l.inFlight < baseInFlight && !l.failing
}
