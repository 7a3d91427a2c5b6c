package redis

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime/internal/clock"
)

const (
	firstProbe = 150 * time.Millisecond // no probe passes sooner
	lastProbe  = 250 * time.Millisecond // nor later
)

// A breakerSubject is a breaker under test and the turns that it has reported.
type breakerSubject struct {
	t testing.TB
	*breaker
	turns []bool
}

func newBreakerSubject(t testing.TB) *breakerSubject {
	s := &breakerSubject{t: t}
	cfg := quiet(t)
	cfg.Changed = func(_ string, open bool) { s.turns = append(s.turns, open) }
	s.breaker = newBreaker(&Router{cfg: cfg}, "")
	return s
}

func (s *breakerSubject) mustAllow() permission {
	s.t.Helper()
	p, ok := s.Allow(clock.Now())
	if !ok {
		s.t.Fatal("a call is refused")
	}
	return p
}

func (s *breakerSubject) mustRefuse() {
	s.t.Helper()
	if _, ok := s.Allow(clock.Now()); ok {
		s.t.Fatal("a call is allowed")
	}
}

// fail sends a batch that fails when the timeout is over.
func (s *breakerSubject) fail() {
	s.t.Helper()
	p, sent := s.mustAllow(), clock.Now()
	time.Sleep(timeout)
	s.Failure(p, sent)
}

// open opens the breaker and returns when a probe is due.
func (s *breakerSubject) open() {
	s.t.Helper()
	for range 4 {
		s.fail()
	}
	s.mustRefuse()
	time.Sleep(lastProbe)
}

func (s *breakerSubject) wantTurns(want ...bool) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.turns); diff != "" {
		s.t.Errorf("it opened (true) and closed (-want +got):\n%s", diff)
	}
}

// TestRow wants failures to count only in a row, and few of them to say nothing
// however long ago the first was.
func TestRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerSubject(t)
		for range 10 {
			for range 3 {
				b.fail()
			}
			b.Success(b.mustAllow())
		}
		for range 100 { // callers that give up say nothing
			b.Cancel(b.mustAllow())
		}
		b.fail()
		time.Sleep(time.Hour)
		b.fail()
		b.wantTurns()
		b.fail()
		b.wantTurns(true)
		for range 1000 {
			b.mustRefuse()
		}
	})
}

// TestLate wants answers that come too late to double the time, since a distant
// Redis may be connecting, and not to keep the breaker closed.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerSubject(t)
		begin := time.Now()
		for len(b.turns) == 0 {
			b.fail()
			if len(b.turns) == 0 {
				b.Late(b.mustAllow())
			}
			if time.Since(begin) > time.Second {
				t.Fatal("the breaker does not open")
			}
		}
		if after := time.Since(begin); after < 400*time.Millisecond || after > 450*time.Millisecond {
			t.Errorf("opened after %v, want 400ms", after)
		}
	})
}

// TestProbes wants one probe at a time, when it is due, and the first that is
// answered to close the breaker.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerSubject(t)
		for range 4 {
			b.fail()
		}
		seen := map[time.Duration]bool{}
		for range 20 {
			began := time.Now()
			for {
				if p, ok := b.Allow(clock.Now()); ok {
					if !p.Probe() {
						t.Fatal("a call passes that is no probe")
					}
					b.Failure(p, clock.Now())
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
		probe := b.mustAllow()
		b.mustRefuse() // while one is under way
		b.Success(probe)
		b.wantTurns(true, false)
		for range 3 {
			b.fail() // the row has begun again
		}
		b.wantTurns(true, false)
	})
}

// TestSlowProbe wants no second probe beside a slow one, but another when the
// first is never heard of again.
func TestSlowProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerSubject(t)
		b.open()
		lost := b.mustAllow()
		time.Sleep(firstProbe + timeout - time.Millisecond)
		b.mustRefuse()
		time.Sleep(lastProbe - firstProbe + time.Millisecond)
		next := b.mustAllow()
		b.Success(lost) // which is too late to say anything
		b.Failure(lost, clock.Now())
		b.wantTurns(true)
		b.mustRefuse()
		b.Success(next)
		b.wantTurns(true, false)
	})
}

// TestStaleEvidence wants evidence about calls that were permitted before the
// breaker turned to change nothing.
func TestStaleEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerSubject(t)
		sent := clock.Now()
		early := make([]permission, 20)
		for i := range early {
			early[i] = b.mustAllow()
		}
		b.open()
		b.Success(early[0])
		b.wantTurns(true)
		probe := b.mustAllow()
		b.Success(early[1])
		b.Success(probe)
		b.wantTurns(true, false)
		for _, p := range early[2:] {
			b.Failure(p, sent)
		}
		b.Check(clock.Now())
		b.wantTurns(true, false)
		b.mustAllow()

		// A probe whose answer comes after it has failed.
		b.open()
		late := b.mustAllow()
		b.Failure(late, clock.Now())
		b.Success(late)
		b.wantTurns(true, false, true)
	})
}

// TestProbeCanceled wants another probe when the caller of one gives up, and the
// answer to count if it comes all the same.
func TestProbeCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerSubject(t)
		b.open()
		b.Cancel(b.mustAllow())
		b.mustRefuse()
		time.Sleep(lastProbe)
		probe := b.mustAllow()
		b.Cancel(probe)
		b.Success(probe)
		b.wantTurns(true, false)
	})
}

// TestRetired wants the breaker of a server that has nothing to decide any more to close,
// and to stay closed.
func TestRetired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerSubject(t)
		b.open()
		time.Sleep(lastProbe)
		probe := b.mustAllow()
		b.Retire()
		b.Retire()
		b.wantTurns(true, false)
		b.Failure(probe, clock.Now())
		for range 2 * minFailures {
			b.Failure(b.mustAllow(), clock.Now())
			time.Sleep(minSilence)
			b.Check(clock.Now())
		}
		b.wantTurns(true, false)
	})
}
