package runtime_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
)

const (
	patience   = 50 * time.Millisecond
	firstProbe = 150 * time.Millisecond // no probe comes sooner
	lastProbe  = 250 * time.Millisecond // nor later
)

var errNoAnswer = errors.New("no answer")

// A switchboard is a breaker under test and what it says of itself.
type switchboard struct {
	t *testing.T
	runtime.Breaker
	turns []bool
}

func newSwitchboard(t *testing.T) *switchboard {
	s := &switchboard{t: t}
	s.Breaker = runtime.NewBreaker(patience, func(open bool) { s.turns = append(s.turns, open) })
	return s
}

// mustAdmit returns a call that is let through.
func (s *switchboard) mustAdmit() runtime.Admittance {
	s.t.Helper()
	call, ok := s.Admit()
	if !ok {
		s.t.Fatal("a call is kept from Redis")
	}
	return call
}

// mustRefuse wants a call to be kept from Redis.
func (s *switchboard) mustRefuse() {
	s.t.Helper()
	if _, ok := s.Admit(); ok {
		s.t.Fatal("a call is let through")
	}
}

// open opens the breaker and returns when a probe is due.
func (s *switchboard) open() {
	s.t.Helper()
	for range 5 {
		s.mustAdmit().Failed()
	}
	s.mustRefuse()
	time.Sleep(lastProbe)
}

func (s *switchboard) wantTurns(want ...bool) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.turns); diff != "" {
		s.t.Errorf("it has opened (true) and closed (-want +got):\n%s", diff)
	}
}

func TestBreakerOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSwitchboard(t)
		for range 3 { // an answer in between starts the count again
			for range 4 {
				b.mustAdmit().Failed()
			}
			b.mustAdmit().Succeeded()
		}
		for range 100 { // callers that give up say nothing
			b.mustAdmit().Dropped()
		}
		b.wantTurns()
		for range 5 {
			b.mustAdmit().Failed()
		}
		b.wantTurns(true)
		for range 1000 {
			b.mustRefuse()
		}
	})
}

// TestBreakerProbes wants one probe at a time, when it is due, and the first
// that is answered to close the breaker.
func TestBreakerProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSwitchboard(t)
		for range 5 {
			b.mustAdmit().Failed()
		}
		seen := map[time.Duration]bool{}
		for range 20 {
			began := time.Now()
			for {
				if probe, ok := b.Admit(); ok {
					probe.Failed()
					break
				}
				time.Sleep(time.Millisecond)
			}
			waited := time.Since(began)
			if waited < firstProbe || waited > lastProbe+time.Millisecond {
				t.Errorf("a probe after %v, want %v to %v", waited, firstProbe, lastProbe)
			}
			seen[waited] = true
		}
		if len(seen) < 5 {
			t.Errorf("20 probes were only %d different times apart: processes would probe together", len(seen))
		}
		time.Sleep(lastProbe)
		probe := b.mustAdmit()
		b.mustRefuse() // while one is under way
		probe.Succeeded()
		b.wantTurns(true, false)
		for range 4 {
			b.mustAdmit().Failed() // the count has started again
		}
		b.wantTurns(true, false)
	})
}

// TestBreakerSlowProbe wants no second probe beside a slow one, but another
// when the first is never heard of again.
func TestBreakerSlowProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSwitchboard(t)
		b.open()
		lost := b.mustAdmit()
		time.Sleep(firstProbe + patience - time.Millisecond)
		b.mustRefuse()
		time.Sleep(lastProbe - firstProbe + time.Millisecond)
		next := b.mustAdmit()
		lost.Succeeded() // which is too late to say anything
		lost.Failed()
		b.wantTurns(true)
		b.mustRefuse()
		next.Succeeded()
		b.wantTurns(true, false)
	})
}

// TestBreakerLateResults wants what becomes of calls that began before the
// breaker turned to change nothing.
func TestBreakerLateResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSwitchboard(t)
		early := make([]runtime.Admittance, 20)
		for i := range early {
			early[i] = b.mustAdmit()
		}
		b.open()
		early[0].Succeeded()
		b.wantTurns(true)
		probe := b.mustAdmit()
		early[1].Succeeded()
		probe.Succeeded()
		b.wantTurns(true, false)
		for _, call := range early[2:] {
			call.Failed()
		}
		b.wantTurns(true, false)
		b.mustAdmit()

		// A probe whose answer comes after it was given up.
		b.open()
		late := b.mustAdmit()
		late.Failed()
		late.Succeeded()
		b.wantTurns(true, false, true)
	})
}

// TestBreakerProbeDropped wants another probe when the caller of one gives up,
// and the answer to count if it comes all the same.
func TestBreakerProbeDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSwitchboard(t)
		b.open()
		b.mustAdmit().Dropped()
		b.mustRefuse()
		time.Sleep(lastProbe)
		probe := b.mustAdmit()
		probe.Dropped()
		probe.Succeeded()
		b.wantTurns(true, false)
	})
}

// TestBreakerLearns says which errors are answers: Redis may refuse a call and
// be well, but not if it serves nobody just now.
func TestBreakerLearns(t *testing.T) {
	for _, test := range []struct {
		err  error
		open bool
	}{
		{nil, false},
		{reply("WRONGTYPE Operation against a key holding the wrong kind of value"), false},
		{reply("NOPERM this user has no permissions to run the 'evalsha' command"), false},
		{reply("OOM command not allowed when used memory > 'maxmemory'."), false},
		{errNoAnswer, true},
		{reply("LOADING Redis is loading the dataset in memory"), true},
		{reply("CLUSTERDOWN Hash slot not served"), true},
		{reply("MASTERDOWN Link with MASTER is down"), true},
	} {
		b := newSwitchboard(t)
		for range 5 {
			b.mustAdmit().Learn(test.err)
		}
		if open := len(b.turns) == 1; open != test.open {
			t.Errorf("%v: open %v, want %v", test.err, open, test.open)
		}
	}
}

// BenchmarkBreakerOpen is what a call costs while Redis is left alone.
func BenchmarkBreakerOpen(b *testing.B) {
	breaker := runtime.NewBreaker(time.Hour, nil)
	for range 5 {
		call, _ := breaker.Admit()
		call.Failed()
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			breaker.Admit()
		}
	})
}

// A reply is an error that Redis replied.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}
