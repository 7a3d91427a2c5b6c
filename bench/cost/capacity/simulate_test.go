package main

import (
	"io"
	"testing"
	"time"
)

// small is a plan that one shard has time for.
var (
	smallTraffic = traffic{Keys: 50, Zipf: 1.2, Rate: 20_000, For: 4 * time.Second, Burst: 2}
	small        = plan{Processes: 40, Shards: 2, Max: 100, Window: time.Second, Trip: 500 * time.Microsecond, Fails: -1, Cost: cost{20, 5}, Seed: 1}
)

func simulated(t *testing.T, load traffic, p plan) *simulation {
	t.Helper()
	if err := check(load, p); err != nil {
		t.Fatal(err)
	}
	s := newSimulation(load, p)
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.report(io.Discard)
	return s
}

func all(int) bool { return true }

// TestExact wants a cluster that has time for all calls to admit exactly max in a
// window, and none to be refused while there is room.
func TestExact(t *testing.T) {
	s := simulated(t, smallTraffic, small)
	v := s.judge.verdictOf(all)
	if v.most != small.Max || v.needless > 0 || v.refused == 0 || s.judge.results[undecided] > 0 {
		t.Errorf("%+v, %d undecided: want windows of exactly %d calls", v, s.judge.results[undecided], small.Max)
	}
	if s.judge.local == 0 || s.judge.local > v.refused {
		t.Errorf("%d calls were answered without a request, of %d refused", s.judge.local, v.refused)
	}
}

// TestStoppedShard wants only keys of the shard that stops to pass their limit, and
// the breaker to keep most calls from waiting.
func TestStoppedShard(t *testing.T) {
	p := small
	p.Fails = 1
	s := simulated(t, smallTraffic, p)
	if v := s.judge.verdictOf(func(key int) bool { return s.shardOf(key) != 1 }); v.most != p.Max || v.needless > 0 {
		t.Errorf("keys of the shard that answers: %+v", v)
	}
	if v := s.judge.verdictOf(func(key int) bool { return s.shardOf(key) == 1 }); v.most <= p.Max {
		t.Errorf("keys of the shard that stops: %+v, want more than %d in some window", v, p.Max)
	}
	if p50 := s.judge.took.Quantile(0.5); p50 > 5*time.Millisecond {
		t.Errorf("half of the calls take %v", p50)
	}
}

// TestLeases wants leases to spare the shards requests, and to admit at most max in a
// window and at least the share of it that they cost.
func TestLeases(t *testing.T) {
	load := traffic{Keys: 2, Zipf: 2, Rate: 20_000, For: 4 * time.Second, Burst: 1}
	p := small
	p.Processes, p.Max = 4, 100_000
	without := simulated(t, load, p)
	p.Lease = 50 * time.Millisecond
	with := simulated(t, load, p)
	requests := func(s *simulation) (n int) {
		for _, shard := range s.shards {
			n += shard.requests
		}
		return n
	}
	if a, b := requests(without), requests(with); b > a/4 {
		t.Errorf("%d requests with leases, %d without", b, a)
	}
	p.Max = 2_000 // less than is asked for
	tight := simulated(t, load, p)
	v := tight.judge.verdictOf(all)
	least := int64(float64(p.Max) * (1 - 2*p.Lease.Seconds()/p.Window.Seconds()))
	if v.most > p.Max || v.most < least {
		t.Errorf("up to %d calls in a window, want %d to %d", v.most, least, p.Max)
	}
}

// TestJudge wants known calls to be judged as they are.
func TestJudge(t *testing.T) {
	j := newJudge(1, plan{Max: 2, Window: time.Second})
	for _, at := range []time.Duration{0, 400, 900, 1000, 1500} { // milliseconds
		j.charged(0, at*time.Millisecond)
	}
	j.charged(0, 1600*time.Millisecond)
	j.lost(0, 1600*time.Millisecond)
	j.refused(0, 950*time.Millisecond, 0)  // three were in the window
	j.refused(0, 2450*time.Millisecond, 0) // one was
	v := j.verdictOf(all)
	if v != (verdict{most: 3, refused: 2, needless: 1}) {
		t.Errorf("got %+v", v)
	}
}
