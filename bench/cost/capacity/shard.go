package main

import (
	"math"
	"time"
)

// cost is the time that a Redis needs, in microseconds.
type cost struct {
	Trip float64 // for a request
	Key  float64 // and for each key in it
}

func (c cost) of(keys int) time.Duration {
	return time.Duration((c.Trip + c.Key*float64(keys)) * float64(time.Microsecond))
}

// A shard is one Redis: one thread that serves requests in the order in which they
// come, and the exact log of every key.
type shard struct {
	free     time.Duration // when it has served all so far
	busy     time.Duration
	requests int
	decided  int // calls, also those that are merged into one
	keys     int // in requests

	stops, goesOn time.Duration
	logs          map[int]*keyLog
}

// serve returns when a request for so many keys that arrives at a time has been
// served.
func (s *shard) serve(arrives, takes time.Duration) time.Duration {
	begin := max(arrives, s.free)
	if end := begin + takes; end > s.stops && begin < s.goesOn {
		begin = max(begin, s.goesOn)
	}
	s.free = begin + takes
	s.busy += takes
	s.requests++
	return s.free
}

func (s *shard) log(key int) *keyLog {
	l := s.logs[key]
	if l == nil {
		l = new(keyLog)
		s.logs[key] = l
	}
	return l
}

// A keyLog is the events of a key in a sliding window.
type keyLog struct {
	events []event // the oldest first
	first  int     // of those that have not left
	used   int64
}

type event struct {
	at time.Duration
	n  int64
}

// take charges up to n events if at least one has room, all or none if whole is set.
// It returns how many were charged, how many have room now, and when one has.
func (l *keyLog) take(now, window time.Duration, limit, n int64, whole bool) (charged, room int64, retry time.Duration) {
	l.trim(now - window)
	room = limit - l.used
	if charged = min(n, room); whole && charged < n {
		charged = 0
	}
	if charged > 0 {
		if last := len(l.events) - 1; last >= l.first && l.events[last].at == now {
			l.events[last].n += charged
		} else {
			l.events = append(l.events, event{now, charged})
		}
		l.used += charged
		room -= charged
	}
	if retry = time.Duration(math.MaxInt64); l.first < len(l.events) {
		retry = l.events[l.first].at + window
	}
	return charged, room, retry
}

// put gives events back that were charged at a time.
func (l *keyLog) put(at time.Duration, n int64) {
	for i := len(l.events) - 1; i >= l.first && n > 0; i-- {
		if e := &l.events[i]; e.at == at {
			back := min(n, e.n)
			e.n -= back
			l.used -= back
			return
		}
	}
}

// trim lets events leave that are as old as a time, or older.
func (l *keyLog) trim(until time.Duration) {
	for l.first < len(l.events) && l.events[l.first].at <= until {
		l.used -= l.events[l.first].n
		l.first++
	}
	if l.first > 1000 && l.first > len(l.events)/2 {
		l.events = append(l.events[:0], l.events[l.first:]...)
		l.first = 0
	}
}
