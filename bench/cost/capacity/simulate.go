package main

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"time"
)

// A plan is what calls meet: one limit for each key, on a cluster.
type plan struct {
	Processes int
	Shards    int
	Max       int64
	Window    time.Duration
	Lease     time.Duration
	Trip      time.Duration // on the wire, there and back
	Fails     int           // shard that stops for a fifth of the time, or -1
	Cost      cost
	Seed      uint64
}

// span is how long a shard counts an event.
func (p plan) span() time.Duration { return p.Window + p.Lease }

// A simulation is one run of a plan.
type simulation struct {
	traffic
	plan
	shards    []*shard
	processes []process
	random    *rand.Rand
	due       dueRequests
	judge     *judge
}

// A request is calls of one process that are on their way to a shard.
type request struct {
	process, shard int
	calls          []call
	charged        []int64 // of each
	retry          []time.Duration
	room           []int64
	probe          bool
	sent, decided  time.Duration
	back           time.Duration
	overdue        bool // and its answer is still to come
	at             time.Duration
}

func newSimulation(t traffic, p plan) *simulation {
	s := &simulation{traffic: t, plan: p, random: rand.New(rand.NewPCG(p.Seed, 0)), judge: newJudge(t.Keys, p)}
	for i := range p.Shards {
		shard := &shard{logs: map[int]*keyLog{}}
		if i == p.Fails {
			shard.stops, shard.goesOn = t.For*3/5, t.For*4/5
		}
		s.shards = append(s.shards, shard)
	}
	s.processes = make([]process, p.Processes)
	for i := range s.processes {
		s.processes[i] = process{links: make([]link, p.Shards), denials: map[int]denial{}, leases: map[int]*lease{}}
	}
	return s
}

// shardOf returns the shard of a key: any mapping without a pattern does.
func (s *simulation) shardOf(key int) int {
	h := uint64(key+1) * 0x9E3779B97F4A7C15
	return int(h >> 33 % uint64(s.Shards))
}

// run makes all calls.
func (s *simulation) run(ctx context.Context) error {
	calls := s.calls(rand.New(rand.NewPCG(s.Seed, 1)), 1)
	at, key, more := calls.next()
	for n := 0; more || len(s.due) > 0; n++ {
		if n%100_000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if len(s.due) > 0 && (!more || s.due[0].at <= at) {
			s.progress(heap.Pop(&s.due).(*request))
			continue
		}
		s.arrive(at, key, s.random.IntN(s.Processes))
		at, key, more = calls.next()
	}
	return nil
}

// arrive has a process make a call.
func (s *simulation) arrive(now time.Duration, key, of int) {
	p := &s.processes[of]
	if d, known := p.denials[key]; known {
		switch {
		case now >= d.fits:
			delete(p.denials, key)
		case now < d.until:
			s.judge.refused(key, now, 0)
			return
		default: // this call asks anew
			p.denials[key] = denial{now + trusted, d.fits}
		}
	}
	if s.Lease > 0 && s.admitByLease(p, of, key, now) {
		return
	}
	l := &p.links[s.shardOf(key)]
	if l.open {
		if now < l.probe {
			s.undecided(p, key, now, 0)
			return
		}
		l.probe = now + timeout + probeEvery
	}
	s.wait(l, of, s.shardOf(key), call{at: now, key: key}, now)
}

// wait adds a call to those that wait, and sends a request if one may be.
func (s *simulation) wait(l *link, of, shard int, c call, now time.Duration) {
	l.waiting = append(l.waiting, c)
	if l.free() {
		s.send(l, of, shard, now)
	}
}

// send sends a request for those who wait.
func (s *simulation) send(l *link, of, shard int, now time.Duration) {
	r := &request{process: of, shard: shard, probe: l.open, sent: now}
	keys := map[int]bool{}
	for len(l.waiting) > 0 {
		c := l.waiting[0]
		if now >= c.at+timeout {
			s.giveUp(&s.processes[of], c)
		} else if keys[c.key] = true; len(keys) > maxKeys {
			break
		} else {
			r.calls = append(r.calls, c)
		}
		l.waiting = l.waiting[1:]
	}
	if len(l.waiting) == 0 {
		l.waiting = nil
	}
	if len(r.calls) == 0 {
		return
	}
	l.inFlight++
	node := s.shards[shard]
	r.decided = node.serve(now+s.Trip/2, s.Cost.of(min(len(keys), maxKeys)))
	r.back = r.decided + s.Trip/2
	node.decided += len(r.calls)
	node.keys += min(len(keys), maxKeys)
	for _, c := range r.calls {
		charged, room, retry := node.log(c.key).take(r.decided, s.span(), s.Max, max(1, c.units), true)
		if charged > 0 && c.units == 0 {
			s.judge.charged(c.key, r.decided)
		}
		r.charged, r.room, r.retry = append(r.charged, charged), append(r.room, room), append(r.retry, retry)
	}
	if r.at = r.back; r.back > now+timeout {
		r.overdue, r.at = true, now+timeout
	}
	heap.Push(&s.due, r)
}

// progress goes on with a request whose time is over, or that is back.
func (s *simulation) progress(r *request) {
	p := &s.processes[r.process]
	l := &p.links[r.shard]
	if r.overdue {
		r.overdue = false
		l.overdue(r.sent, r.at, r.probe)
		for i, c := range r.calls {
			if r.charged[i] > 0 && c.units == 0 {
				s.judge.lost(c.key, r.decided)
			}
			s.giveUp(p, c)
		}
		r.calls = nil
	} else {
		l.inFlight--
		l.answered(r.probe)
		for i, c := range r.calls {
			s.answer(p, r, i, c)
		}
	}
	if len(l.waiting) > 0 && l.free() {
		s.send(l, r.process, r.shard, r.at)
	}
}

// answer tells the caller of a call what became of it.
func (s *simulation) answer(p *process, r *request, i int, c call) {
	if c.units > 0 {
		s.keepLease(p, r, i, c)
		return
	}
	if r.back > c.at+timeout { // it has waited for the request before
		if r.charged[i] > 0 {
			s.judge.lost(c.key, r.decided)
		}
		s.giveUp(p, c)
		return
	}
	if r.charged[i] == 0 {
		p.denials[c.key] = denial{r.sent + trusted, r.retry[i]}
		s.judge.refused(c.key, r.decided, r.back-c.at)
		return
	}
	s.judge.admitted(r.back - c.at)
	if s.Lease > 0 {
		s.usedAlone(p, r.process, c.key, r.room[i], r.at)
	}
}

// giveUp has a caller go on whose time is over.
func (s *simulation) giveUp(p *process, c call) {
	if c.units > 0 {
		p.leases[c.key].asking = false
		return
	}
	s.undecided(p, c.key, c.at+timeout, timeout)
}

// undecided lets a call through that no shard has decided, unless its caller was
// denied before.
func (s *simulation) undecided(p *process, key int, now, took time.Duration) {
	if d, known := p.denials[key]; known && now < d.fits {
		s.judge.refused(key, now, took)
		return
	}
	s.judge.undecided(key, now, took)
}

// dueRequests is a heap of requests by the time at which they go on.
type dueRequests []*request

func (d dueRequests) Len() int           { return len(d) }
func (d dueRequests) Less(i, j int) bool { return d[i].at < d[j].at }
func (d dueRequests) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dueRequests) Push(r any)        { *d = append(*d, r.(*request)) }
func (d *dueRequests) Pop() any {
	old := *d
	r := old[len(old)-1]
	*d = old[:len(old)-1]
	return r
}
