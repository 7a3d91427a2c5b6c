// Package strictpeer counts requests as the services do that refuse what is above their
// limit: when a request arrives, and to the nanosecond.
package strictpeer

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// A Peer admits Max requests in a Window, as Admits counts them. It is safe for concurrent
// use once these are set.
type Peer struct {
	Max    int
	Burst  int // of a Bucket; 0: Max
	Window time.Duration
	Admits Count

	mu      sync.Mutex
	events  []time.Time // that were admitted
	level   float64
	at      time.Time
	refused int
}

// A Count reports whether a request that arrives at now is admitted.
type Count func(p *Peer, now time.Time) bool

// Rolling admits Max in any window that ends now.
func Rolling(p *Peer, now time.Time) bool {
	return len(p.events) < p.Max || now.Sub(p.events[len(p.events)-p.Max]) >= p.Window
}

// Fixed admits Max in each window, which follow each other from the first request on.
func Fixed(p *Peer, now time.Time) bool {
	n := 0
	for i := len(p.events) - 1; i >= 0 && p.events[i].Sub(p.events[0])/p.Window == now.Sub(p.events[0])/p.Window; i-- {
		n++
	}
	return n < p.Max
}

// Bucket admits Burst at once, and Max in a window.
func Bucket(p *Peer, now time.Time) bool {
	p.level = max(0, p.level-now.Sub(p.at).Seconds()/p.Window.Seconds()*float64(p.Max))
	p.at = now
	if p.level+1 > float64(cmp.Or(p.Burst, p.Max))+1e-9 {
		return false
	}
	p.level++
	return true
}

// Arrive counts a request that arrives now, unless it refuses it, and returns when.
func (p *Peer) Arrive() (now time.Time, admitted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now = time.Now() // in the order of the events
	if !p.Admits(p, now) {
		p.refused++
		return now, false
	}
	p.events = append(p.events, now)
	return now, true
}

// SetMax changes Max while requests arrive.
func (p *Peer) SetMax(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Max = n
}

// Limit returns Max as it is now, and the time until a peer with a [Rolling] window admits
// a request.
func (p *Peer) Limit() (most int, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.events); n >= p.Max {
		wait = max(0, p.Window-time.Since(p.events[n-p.Max]))
	}
	return p.Max, wait
}

// Left returns how many more a peer with a [Rolling] window would have admitted at a time, its
// limit being what it is now.
func (p *Peer) Left(at time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.Max
	for i := len(p.events) - 1; i >= 0 && at.Sub(p.events[i]) < p.Window; i-- {
		left--
	}
	return max(0, left)
}

// Seen returns when requests were admitted, and how many were refused.
func (p *Peer) Seen() (events []time.Time, refused int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.events), p.refused
}

// Used returns the share of the limit that was used from a window after the first request
// until end: of Max, how many requests were in a window on average.
func (p *Peer) Used(end time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.events) == 0 {
		return 0
	}
	begin := p.events[0].Add(p.Window)
	var counted time.Duration
	for _, e := range p.events {
		from, to := e, e.Add(p.Window)
		if from.Before(begin) {
			from = begin
		}
		if to.After(end) {
			to = end
		}
		counted += max(0, to.Sub(from))
	}
	return counted.Seconds() / float64(p.Max) / end.Sub(begin).Seconds()
}
