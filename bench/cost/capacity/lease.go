package main

import "time"

// admitByLease admits a call from a lease of its process, if that has one, and asks
// for the next one in time.
func (s *simulation) admitByLease(p *process, of, key int, now time.Duration) bool {
	l := p.leases[key]
	if l == nil || now >= l.end || l.left == 0 {
		if l != nil && l.left > 0 {
			s.giveBack(l, key, now)
		}
		return false
	}
	l.left--
	l.use(1, now, s.Lease)
	s.judge.charged(key, now)
	s.judge.admitted(0)
	if l.left <= l.low || now >= l.end-s.Lease/leaseShare {
		s.ask(p, of, key, l, now)
	}
	return true
}

// usedAlone notes a call that a shard has admitted.
func (s *simulation) usedAlone(p *process, of, key int, room int64, now time.Duration) {
	l := p.leases[key]
	if l == nil {
		l = new(lease)
		p.leases[key] = l
	}
	l.room = room
	l.use(1, now, s.Lease)
	if l.left == 0 || now >= l.end {
		s.ask(p, of, key, l, now)
	}
}

// ask asks for a lease, unless one is on its way or the key is used too little.
func (s *simulation) ask(p *process, of, key int, l *lease, now time.Duration) {
	if l.asking {
		return
	}
	if n := l.wanted(now, s.Lease); n > 0 {
		shard := s.shardOf(key)
		if link := &p.links[shard]; !link.open {
			l.asking = true
			s.wait(link, of, shard, call{at: now, key: key, units: n}, now)
		}
	}
}

// keepLease keeps what a shard has answered to a process that asked for a lease. Its
// time runs from when it asked.
func (s *simulation) keepLease(p *process, r *request, i int, c call) {
	l := p.leases[c.key]
	l.asking = false
	l.room = r.room[i]
	if r.charged[i] == 0 {
		return
	}
	if l.left > 0 {
		s.giveBack(l, c.key, r.at)
	}
	l.left, l.low, l.end, l.charged = r.charged[i], r.charged[i]/4, c.at+s.Lease, r.decided
	if r.at >= l.end {
		s.giveBack(l, c.key, r.at)
	}
}

// giveBack returns the units that a lease has left. They go with requests that there
// are anyway.
func (s *simulation) giveBack(l *lease, key int, now time.Duration) {
	shard := s.shards[s.shardOf(key)]
	shard.log(key).put(l.charged, l.left)
	shard.serve(now+s.Trip/2, s.Cost.of(1)-s.Cost.of(0))
	shard.requests--
	l.left = 0
}
