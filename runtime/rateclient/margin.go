package rateclient

import (
	"sync"
	"time"
)

const (
	// marginShare is the share of a window that a measured margin may have. It has half of
	// that, or hiccup, in any case.
	marginShare = 64
	// hiccup is how long something unforeseen may delay a request: a lost packet is sent
	// again after some tenths of a second.
	hiccup = time.Second
	// marginSteps is how many margins there are.
	marginSteps = 8
	// fewTrips are too few to tell how much delays differ.
	fewTrips = 32
)

// A spread measures how much the delays of requests differ: from when they were charged,
// or later by the way back from Redis, until they arrive at the peer. Nobody tells when
// that is, but it is before the answer comes. So delays differ by no more than trips do,
// as long as the peer takes equally long for all.
type spread struct {
	period time.Duration

	mu      sync.Mutex
	began   time.Time // of the extremes now
	now     extremes
	before  extremes // in the period before
	settled bool     // there were enough trips in a period
}

type extremes struct {
	trips    int
	min, max time.Duration
}

func (e *extremes) add(trip time.Duration) {
	if e.trips == 0 {
		e.min, e.max = trip, trip
	}
	e.trips, e.min, e.max = e.trips+1, min(e.min, trip), max(e.max, trip)
}

// add takes a trip into account that has ended at now.
func (s *spread) add(trip time.Duration, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.began) >= s.period {
		s.before, s.now, s.began = s.now, extremes{}, now
	}
	s.now.add(trip)
	s.settled = s.settled || s.now.trips >= fewTrips
}

// margin returns by how much delays may differ: a quarter more than they were seen to. It
// is very long until enough trips were seen.
func (s *spread) margin() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.settled {
		return maxTime
	}
	e := s.now
	if e.trips == 0 {
		e = s.before
	} else if s.before.trips > 0 {
		e.min, e.max = min(e.min, s.before.min), max(e.max, s.before.max)
	}
	return (e.max - e.min) * 5 / 4
}
