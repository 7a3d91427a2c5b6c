package redis

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestFewShare has a few callers come back as soon as they are told, as often as 200
// times. From three on they share their trips; fewer send one each.
// A stall in between makes no call wait for longer than its time.
func TestFewShare(t *testing.T) {
	// Whether callers come back in time is for the scheduler to say where it runs them on
	// several processors.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for n := 1; n <= 16; n++ {
		for _, punctual := range []bool{true, false} {
			least, most := 0.7*float64(n), float64(n)
			if punctual && n <= baseInFlight { // a caller sends its own batch
				least, most = 1, 1
			} else if n <= baseInFlight+1 && !punctual { // the loops that send take turns
				least = 1
			}
			synctest.Test(t, func(t *testing.T) {
				server := &fakeServer{delay: time.Millisecond, punctual: punctual}
				s := newSubject(t, server)
				for range 2 {
					var wait sync.WaitGroup
					for s.take(context.Background(), "first") != nil {
						time.Sleep(time.Second) // the circuit breaker is still open
					}
					server.calls.Store(0)
					server.batches.Store(0)
					for i := range n {
						wait.Go(func() {
							for range 200 {
								if err := s.take(context.Background(), strconv.Itoa(i)); err != nil {
									t.Error(err)
								}
							}
						})
					}
					wait.Wait()
					if each := float64(server.calls.Load()) / float64(server.batches.Load()); each < least || each > most {
						t.Errorf("%d callers, punctual %v: %.2f of them shared a trip", n, punctual, each)
					}
					server.stall()
					time.AfterFunc(3*timeout/2, server.resume)
					for range n {
						wait.Go(func() {
							began := time.Now()
							_ = s.take(context.Background(), "stalled")
							if took := time.Since(began); took > timeout {
								t.Errorf("%d callers, punctual %v: one waited %v", n, punctual, took)
							}
						})
					}
					wait.Wait()
					time.Sleep(time.Minute)
					if waiting, batches := s.Load(); waiting != 0 || batches != 0 {
						t.Errorf("%d callers, punctual %v: %d calls wait, %d batches are under way", n, punctual, waiting, batches)
					}
				}
			})
		}
	}
}

// TestApart has callers arrive one after the other, of which two are under way at a time.
// None of them waits for a batch that is under way, wherever in its time it arrives.
func TestApart(t *testing.T) {
	for tenths := 6; tenths <= 9; tenths++ {
		synctest.Test(t, func(t *testing.T) {
			server := &fakeServer{delay: time.Millisecond, punctual: true}
			s := newSubject(t, server)
			var wait sync.WaitGroup
			for i := range 100 {
				wait.Go(func() {
					began := time.Now()
					if err := s.take(context.Background(), strconv.Itoa(i)); err != nil {
						t.Error(err)
					}
					if took := time.Since(began); took != server.delay {
						t.Errorf("one every %d tenths of a trip: call %d took %v", tenths, i, took)
					}
				})
				time.Sleep(time.Duration(tenths) * server.delay / 10)
			}
			wait.Wait()
		})
	}
}
