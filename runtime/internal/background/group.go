package background

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

// A Group is what runs for an owner, and ends before that is closed. The zero Group is open.
type Group struct {
	mu      sync.Mutex // held to begin something, and to close
	closed  atomic.Bool
	running sync.WaitGroup
}

// Begin reports whether something may run. It is followed by End then, when that has ended.
func (g *Group) Begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Closed() {
		return false
	}
	g.running.Add(1)
	return true
}

func (g *Group) End() { g.running.Done() }

// Go has a function called in a goroutine, unless the group is closed, and reports whether.
func (g *Group) Go(call func()) bool {
	if !g.Begin() {
		return false
	}
	go func() {
		defer g.End()
		call()
	}()
	return true
}

// Try has a function called like that, and again until it reports that it has done: n times at most, after a
// pause that becomes eight times as long each time. It is told which time is the last.
func (g *Group) Try(n int, pause time.Duration, do func(last bool) (done bool)) {
	g.Go(func() {
		if !do(n == 1) && n > 1 {
			time.AfterFunc(pause, func() { g.Try(n-1, 8*pause, do) })
		}
	})
}

func (g *Group) Closed() bool { return g.closed.Load() }

// Close returns when nothing runs any more, and nothing will.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed.Store(true)
	g.mu.Unlock()
	g.running.Wait()
}

// CloseWithin is Close for no longer than a time. It reports whether nothing runs any more.
func (g *Group) CloseWithin(most time.Duration) bool {
	g.mu.Lock()
	g.closed.Store(true)
	g.mu.Unlock()
	done := make(chan struct{})
	go func() {
		g.running.Wait()
		close(done)
	}()
	return clock.Await(done, most)
}
