package crossing

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A pulse finds out when the machine was so busy that a server may have given no answer in time, or this
// process may have had no time to read it: it pings all of them, by connections on which nothing goes wrong, and
// looks at when it comes to that.
type pulse struct {
	world *redisWorld
	end   chan struct{}
	pings sync.WaitGroup
	mu    sync.Mutex
	slow  []*happening // pings that took long
}

const (
	beat = 20 * time.Millisecond // between pings
	// slowPing is what no ping takes on a machine that has time: a call, whose answer goes through a
	// proxy and several goroutines, has eight times as much.
	slowPing = patience / 8
)

func (w *redisWorld) pulse() *pulse {
	p := &pulse{world: w, end: make(chan struct{})}
	for _, n := range w.nodes {
		p.pings.Go(func() {
			for last := w.now(); ; {
				_ = n.admin.Ping(context.Background()).Err()
				h := &happening{from: last, to: w.now()}
				last = h.to
				if h.to-h.from > slowPing+beat {
					p.mu.Lock()
					p.slow = append(p.slow, h)
					p.mu.Unlock()
				}
				select {
				case <-p.end:
					return
				case <-time.After(beat):
				}
			}
		})
	}
	return p
}

// stop returns when the machine was busy. A server may be stopped for as long as a fault is.
func (p *pulse) stop() []*happening {
	close(p.end)
	p.pings.Wait()
	return slices.Clone(p.slow)
}
