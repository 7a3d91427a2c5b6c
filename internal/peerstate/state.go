// Package peerstate keeps what the peers of calls that go out have said about their limits: the max
// that one has set, and until when calls go on evenly after a hold.
//
// It is told of answers, and asked before requests. All processes with one Redis know the same,
// as of a second ago at most. A process that cannot reach Redis goes on with what it knows.
package peerstate

import "time"

// A Limit is a limit of a peer.
type Limit struct {
	First  int64         // the max that holds until the peer names one
	Window time.Duration // in which the max rises by a tenth, if the peer has named a higher one
	Life   time.Duration // for how long a max holds that is not named again
}

// Said is what an answer of the peer says. The zero Said is nothing.
type Said struct {
	Max    int64         // the max; 0: none
	Evenly time.Duration // for how long calls are to go on evenly, from now on
}

// A State is what a peer has said.
type State struct {
	Max   int64     // 0: none
	Paced time.Time // until when calls go on evenly

	Raised time.Time // when the max was set or raised last
	Named  time.Time // when the peer has named one last
}

// note adds what an answer says. It decides as lua/peer.lua does.
func (s *State) note(l *Limit, said Said, now time.Time) {
	if now.Sub(s.Named) > l.Life {
		s.Max = 0
	}
	if said.Max > 0 {
		if s.Max == 0 {
			s.Max, s.Raised = l.First, now
		}
		if said.Max < s.Max {
			s.Max, s.Raised = said.Max, now
		} else if said.Max > s.Max && now.Sub(s.Raised) >= l.Window {
			s.Max, s.Raised = min(said.Max, s.Max+max(1, s.Max/10)), now
		}
		s.Named = now
	}
	if paced := now.Add(said.Evenly); said.Evenly > 0 && paced.After(s.Paced) {
		s.Paced = paced
	}
}

// news reports whether an answer says what is not known, or was named long ago. That calls go on
// evenly for a little longer is none.
func (s *State) news(l *Limit, said Said, now time.Time) bool {
	next := *s
	next.note(l, said, now)
	return next.Max != s.Max || next.Paced.Sub(s.Paced) > said.Evenly/64 || said.Max > 0 && now.Sub(s.Named) > l.Life/4
}
