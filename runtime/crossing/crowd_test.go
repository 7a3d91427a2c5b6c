package crossing

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A crowd is many calls in a short time, each of which is settled a while later: takes and
// settlements come in any order.
type crowd struct{ Calls int }

func (c crowd) String() string { return fmt.Sprintf("%d calls that are settled", c.Calls) }

const (
	crowdComes = 300 * time.Millisecond
	crowdLasts = 100 * time.Millisecond
	crowdShare = 6 // takes and settlements to a script, at least
)

// crowded is what became of a crowd.
type crowded struct {
	crowd
	done, scripts int64 // takes and settlements, and what they needed
}

// run has a crowd come, and again if it did not share trips: a busy machine may be why.
func (c crowd) run(p *process) {
	w, ok := p.world.(*redisWorld)
	if !ok {
		return // only a real server is asked by scripts
	}
	var saw crowded
	for range 2 {
		if p.troubled.Load() > 0 {
			return // nobody knows how often those ask whose calls fail
		}
		if saw = c.come(w); saw.done >= crowdShare*saw.scripts {
			return
		}
	}
	p.history.crowds = append(p.history.crowds, saw)
}

func (c crowd) come(w *redisWorld) crowded {
	client := w.connect()
	defer client.Close()
	for _, n := range w.nodes {
		n.proxy.Delay(3 * time.Millisecond)
		defer n.proxy.Pass()
	}
	store := runtime.NewRedisStore(client, runtime.WithTimeout(patience))
	defer store.Close()
	limiter := runtime.New(store, runtime.WithNamespace(w.space), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	defer limiter.Close()
	// On a cluster each slot has scripts of its own.
	rule := &runtime.Rule{Name: "crowd", Prefix: "{crowd}:", Window: time.Hour, Max: runtime.MaxCount, Algorithm: runtime.SlidingCounter}
	before := w.scripts()
	var calls sync.WaitGroup
	var done atomic.Int64
	for i := range c.Calls {
		limit := rule.Limit(runtime.NewKey().AddString(strconv.Itoa(i)))
		calls.Go(func() {
			time.Sleep(rand.N(crowdComes))
			d, err := limiter.Take(context.Background(), limit)
			if err != nil || d.Source != runtime.SourceStore {
				return
			}
			done.Add(1)
			time.Sleep(rand.N(crowdLasts))
			if limiter.Settle(context.Background(), d, limit.WithSettled(0)) == nil {
				done.Add(1)
			}
		})
	}
	calls.Wait()
	return crowded{c, done.Load(), w.scripts() - before}
}

// scripts returns how many scripts the servers have executed.
func (w *redisWorld) scripts() (n int64) {
	for _, node := range w.nodes {
		info, _ := node.admin.InfoMap(context.Background(), "commandstats").Result()
		for _, name := range []string{"cmdstat_eval", "cmdstat_evalsha"} {
			var calls int64
			_, _ = fmt.Sscanf(info["Commandstats"][name], "calls=%d", &calls)
			n += calls
		}
	}
	return n
}

// judgeCrowds has takes and settlements share trips.
func (o *oracle) judgeCrowds() {
	for _, c := range o.crowds {
		o.wrong("takes and settlements share trips", "%v: %d were done by %d scripts", c.crowd, c.done, c.scripts)
	}
}
