package background

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestGroup wants all that began to have ended when a group is closed, and nothing to begin then.
func TestGroup(t *testing.T) {
	for range 200 {
		var g Group
		var running atomic.Int64
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for g.Go(func() { running.Add(1); running.Add(-1) }) && g.Begin() {
					running.Add(1)
					running.Add(-1)
					g.End()
				}
			})
		}
		g.Close()
		if n := running.Load(); n != 0 {
			t.Fatalf("%d run after Close", n)
		}
		callers.Wait()
		if !g.Closed() || g.Begin() || g.Go(func() { t.Error("a closed group has begun something") }) {
			t.Fatal("a closed group lets something begin")
		}
		g.Close()
	}
}

// TestCloseWithin wants Close to wait no longer than a time, and to say so.
func TestCloseWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		g.Go(func() { time.Sleep(time.Minute) })
		for _, test := range []struct {
			most, waits time.Duration
			ended       bool
		}{{time.Second, time.Second, false}, {time.Hour, 59 * time.Second, true}, {time.Second, 0, true}} {
			began := time.Now()
			if ended := g.CloseWithin(test.most); ended != test.ended || time.Since(began) != test.waits {
				t.Errorf("within %v: %v after %v", test.most, ended, time.Since(began))
			}
		}
	})
}
