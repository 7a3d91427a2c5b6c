package crossing

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A crowd is callers who come again and again for a time, once without and once with
// settling each call.
type crowd struct {
	Callers int
	Lasts   time.Duration
}

func (c crowd) String() string { return fmt.Sprintf("%d callers for %v, twice", c.Callers, c.Lasts) }

// crowded is what a crowd saw.
type crowded struct {
	crowd
	calls, undecided [2]int64 // without settling, and with
	unsettled        int64
}

// run has a crowd come. A busy machine may be in its way, which a second and a third time
// tell from the limiter.
func (c crowd) run(p *process) {
	w, ok := p.world.(*redisWorld)
	if !ok {
		return // only a real server can be overtaxed
	}
	var saw crowded
	for range 3 {
		if p.troubled.Load() > 0 {
			return // these faults are not the crowd's
		}
		if saw = c.come(w); !saw.delayed() {
			return
		}
	}
	p.history.crowds = append(p.history.crowds, saw)
}

// come has callers come twice.
func (c crowd) come(w *redisWorld) crowded {
	client := w.connect()
	defer client.Close()
	for _, n := range w.nodes {
		n.proxy.Delay(3 * time.Millisecond)
		defer n.proxy.Pass()
	}
	saw := crowded{crowd: c}
	rule := &runtime.Rule{Name: "crowd", Window: time.Hour, Max: runtime.MaxCount, Algorithm: runtime.SlidingCounter}
	for settles := range 2 {
		store := runtime.NewRedisStore(client) // which has its usual time
		limiter := runtime.New(store, runtime.WithNamespace(w.space), runtime.WithLogger(slog.New(slog.DiscardHandler)))
		var callers sync.WaitGroup
		var calls, undecided, unsettled atomic.Int64
		begin := time.Now()
		for i := range c.Callers {
			limit := rule.Limit(runtime.NewKey().AddString(strconv.Itoa(i)))
			callers.Go(func() {
				for time.Since(begin) < 100*time.Millisecond+c.Lasts {
					counted := time.Since(begin) > 100*time.Millisecond // when connections are made
					d, err := limiter.Take(context.Background(), limit)
					if counted {
						if calls.Add(1); err != nil || d.Source != runtime.SourceStore {
							undecided.Add(1)
						}
					}
					if settles > 0 && limiter.Settle(context.Background(), d, limit.WithSettled(0)) != nil && counted {
						unsettled.Add(1)
					}
				}
			})
		}
		callers.Wait()
		saw.calls[settles], saw.undecided[settles], saw.unsettled = calls.Load(), undecided.Load(), unsettled.Load()
		_, _ = limiter.Close(), store.Close()
	}
	return saw
}

// delayed reports whether fewer calls were decided with settling than without.
func (c *crowded) delayed() bool {
	without, with := float64(c.undecided[0])/float64(c.calls[0]+1), float64(c.undecided[1]+c.unsettled)/float64(c.calls[1]+1)
	return with > 0.02 && with > 4*without
}

// judgeCrowds has no crowd be delayed by settling.
func (o *oracle) judgeCrowds() {
	for _, c := range o.crowds {
		o.wrong("settling keeps no call from being decided", "%v: %d of %d undecided, and with settling %d of %d, and %d not settled",
			c.crowd, c.undecided[0], c.calls[0], c.undecided[1], c.calls[1], c.unsettled)
	}
}
