package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/runtime/internal/clock"
)

// An answer is what became of a call.
type answer struct {
	arrived, took time.Duration // since the subject was made
	err           error
}

// load has callers call until a time is over, each a pause after its last
// answer, and returns what became of their calls. Their contexts end after
// deadline, if that is not 0.
func (s *subject) load(callers int, lasts, pause, deadline time.Duration) []answer {
	var mu sync.Mutex
	var answers []answer
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() {
			for time.Since(s.started) < lasts {
				ctx, cancel := context.WithCancel(context.Background())
				if deadline > 0 {
					ctx, cancel = context.WithTimeout(context.Background(), deadline)
				}
				arrived := time.Since(s.started)
				err := s.take(ctx, strconv.Itoa(i))
				cancel()
				mu.Lock()
				answers = append(answers, answer{arrived, time.Since(s.started) - arrived, err})
				mu.Unlock()
				time.Sleep(pause)
			}
		})
	}
	wait.Wait()
	return answers
}

// pauseOf returns how long callers pause: many need not call as often for every
// moment to have calls.
func pauseOf(callers int) time.Duration {
	return time.Millisecond * time.Duration(1+callers/8)
}

// TestEveryDelay wants every call to be decided by a Redis that answers within
// the budget less 10 ms, at each such delay and by any number of callers, and
// the breaker to stay closed.
func TestEveryDelay(t *testing.T) {
	for _, punctual := range []bool{false, true} {
		step := effort.Choose(10*time.Millisecond, time.Millisecond)
		for delay := time.Duration(0); delay <= 40*time.Millisecond; delay += step {
			for _, callers := range effort.Choose([]int{1, 3, 8, 64}, []int{1, 2, 3, 8, 64, 256}) {
				synctest.Test(t, func(t *testing.T) {
					server := &fakeServer{delay: delay, punctual: punctual}
					s := newSubject(t, server)
					answers := s.load(callers, 200*time.Millisecond, pauseOf(callers), 0)
					for _, a := range answers {
						if a.err != nil || a.took > delay+s.linger+time.Millisecond+delay/2 {
							t.Fatalf("delay %v, %d callers: call at %v took %v: %v", delay, callers, a.arrived, a.took, a.err)
						}
					}
					if at, opened := s.opened(); opened {
						t.Errorf("delay %v, %d callers: breaker opened after %v", delay, callers, at)
					}
					if most := server.most.Load(); most > 10 {
						t.Errorf("delay %v, %d callers: %d batches at a time", delay, callers, most)
					}
				})
			}
		}
	}
}

// TestEveryStall has Redis stall once for every length of time. Up to 150 ms only
// calls that arrive during the stall are not decided and the breaker stays
// closed; if the stall lasts the breaker is open within 250 ms, whatever
// deadlines callers have.
func TestEveryStall(t *testing.T) {
	const begin = 200 * time.Millisecond
	step, crowds, deadlines := 73*time.Millisecond, []int{1, 2, 8}, []time.Duration{0, 2 * time.Millisecond}
	if effort.Full() {
		step, crowds = 13*time.Millisecond, append(crowds, 64)
		deadlines = append(deadlines, 10*time.Millisecond, 49*time.Millisecond)
	}
	for _, punctual := range []bool{false, true} {
		for _, deadline := range deadlines {
			for _, callers := range crowds {
				for stall := 7 * time.Millisecond; stall <= 600*time.Millisecond; stall += step {
					synctest.Test(t, func(t *testing.T) {
						name := fmt.Sprintf("punctual %v, deadline %v, %d callers, stall of %v", punctual, deadline, callers, stall)
						server := &fakeServer{delay: 200 * time.Microsecond, punctual: punctual}
						defer server.resume()
						s := newSubject(t, server)
						end := begin + stall
						// The breaker may open at the end; its next probe is due 250 ms later, is the
						// first call that comes then, and takes the server's delay.
						probed := end + 250*time.Millisecond + pauseOf(callers) + time.Millisecond
						time.AfterFunc(begin, server.stall)
						time.AfterFunc(end, server.resume)
						answers := s.load(callers, end+300*time.Millisecond, pauseOf(callers), deadline)
						opened, open := s.opened()
						waited := 0
						for _, a := range answers {
							during := a.arrived >= begin-time.Millisecond && a.arrived <= end
							switch {
							case a.took > timeout:
								t.Fatalf("%s: a call took %v", name, a.took)
							case a.err == nil, during:
							case stall < 150*time.Millisecond, a.arrived < begin, a.arrived > probed:
								t.Fatalf("%s: the call at %v: %v", name, a.arrived, a.err)
							}
							if open && a.arrived > begin+250*time.Millisecond && a.arrived < end && a.took > 0 {
								waited++
							}
						}
						if stall < 150*time.Millisecond && open {
							t.Errorf("%s: breaker opened %v after it began", name, opened-begin)
						} else if stall >= 260*time.Millisecond && (!open || opened-begin > 250*time.Millisecond) {
							t.Errorf("%s: breaker opened: %v, after %v", name, open, opened-begin)
						}
						if probes := int(stall/(150*time.Millisecond)) + 1; waited > probes {
							t.Errorf("%s: %d calls waited while the breaker was open, want at most %d probes", name, waited, probes)
						}
					})
				}
			}
		}
	}
}

// TestFailingCallersLeave lets callers leave in their own ways while nothing
// answers, and wants each to get its own error at its own time.
func TestFailingCallersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{}
		s := newSubject(t, server)
		server.stall()
		var wait sync.WaitGroup
		for i := range 100 {
			after := time.Duration(i) * time.Millisecond
			wait.Go(func() {
				begin := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), after)
				defer cancel()
				err := s.take(ctx, "k")
				took := time.Since(begin)
				if after < timeout && (!errors.Is(err, context.DeadlineExceeded) || took != after) {
					t.Errorf("deadline %v: %v after %v", after, err, took)
				} else if after > timeout && (err != error(LateError(timeout)) || took != timeout) {
					t.Errorf("deadline %v: %v after %v", after, err, took)
				}
			})
			wait.Go(func() {
				begin := time.Now()
				ctx, cancel := context.WithCancel(context.Background())
				defer time.AfterFunc(after, cancel).Stop()
				err := s.take(ctx, "k")
				// A lazy caller watches its context once it has lingered.
				took := time.Since(begin)
				if after < timeout && (!errors.Is(err, context.Canceled) || took != max(after, s.linger)) {
					t.Errorf("canceled after %v: %v after %v", after, err, took)
				}
				cancel()
			})
		}
		wait.Wait()
		server.resume()
	})
}

// TestLinger wants calls that arrive while batches are under way to be sent
// together: when one of these returns, or when the first has lingered.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{delay: 30 * time.Millisecond}
		s := newSubject(t, server)
		var wait sync.WaitGroup
		call := func() {
			wait.Go(func() {
				if err := s.take(context.Background(), "k"); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for range 50 {
			call()
		}
		if n := server.batches.Load(); n != baseInFlight {
			t.Errorf("%d batches at first, want %d", n, baseInFlight)
		}
		time.Sleep(s.linger)
		synctest.Wait()
		if n := server.batches.Load(); n != baseInFlight+1 {
			t.Errorf("%d batches after the linger, want one more", n)
		}
		wait.Wait()
		if n := server.batches.Load(); n != baseInFlight+1 {
			t.Errorf("%d batches in the end", n)
		}
		for i := range 300 { // more than two batches take
			wait.Go(func() { _ = s.take(context.Background(), strconv.Itoa(i)) })
		}
		time.Sleep(s.linger)
		synctest.Wait()
		if waiting, batches := s.Load(); waiting != 0 || batches < 3 {
			t.Errorf("%d calls still wait after the linger, %d batches", waiting, batches)
		}
		wait.Wait()
	})
}

// TestLateInline has a caller send its batch inline when its time is over
// already, as happens in a process that was held up in between. The caller is
// told so, nothing is sent, and the calls after it are decided.
func TestLateInline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{delay: time.Millisecond, punctual: true}
		s := newSubject(t, server)
		ctx := context.Background()
		if err := s.take(ctx, "k"); err != nil { // Redis is near
			t.Fatal(err)
		}
		for range 2 * baseInFlight {
			w := called("k")
			if !s.allow(w) {
				t.Fatal("the circuit breaker is open")
			}
			w.inline = true
			batch, _ := s.join(w)
			if batch == nil {
				t.Fatal("the caller is not alone")
			}
			s.mu.Lock()
			w.due = clock.Now()
			s.mu.Unlock()
			s.expire()
			s.flushInline(batch)
			if err := s.Wait(ctx, w); err != error(LateError(timeout)) {
				t.Errorf("got %v, want that the time is over", err)
			}
		}
		if n := server.batches.Load(); n != 1 {
			t.Errorf("%d batches were sent, want the first alone", n)
		}
		if err := s.take(ctx, "k"); err != nil {
			t.Error(err)
		}
		if waiting, batches := s.Load(); waiting != 0 || batches != 0 {
			t.Errorf("%d calls wait, %d batches are under way", waiting, batches)
		}
	})
}
