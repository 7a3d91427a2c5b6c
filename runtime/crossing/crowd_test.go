package crossing

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A crowd is many calls in a short time, each of which is settled a while later: takes and
// settlements come in any order.
type crowd struct{ Calls int }

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
		if saw = c.come(w); saw.done >= crowdShare*saw.scripts || saw.done < int64(c.Calls) {
			return // also if the machine was so busy that half of it had no answer: their scripts have done nothing
		}
	}
	p.history.crowds = append(p.history.crowds, saw)
}

func (c crowd) come(w *redisWorld) crowded {
	client := w.connect()
	defer client.Close()
	var scripts scriptCount // other calls of the program ask the servers meanwhile
	scripts.watch(client)
	for _, n := range w.nodes {
		n.proxy.Delay(3 * time.Millisecond)
		defer n.proxy.Pass()
	}
	store := runtime.NewRedisStore(client, runtime.WithTimeout(patience))
	defer store.Close()
	limiter := runtime.New(store, runtime.WithNamespace(w.space), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	defer limiter.Close()
	// On a cluster each slot has scripts of its own.
	r := &runtime.Rule{Name: "crowd", Prefix: "{crowd}:", Window: time.Hour, Max: rule.MaxCount, Algorithm: runtime.SlidingCounter}
	var calls sync.WaitGroup
	var done atomic.Int64
	for i := range c.Calls {
		limit := r.Limit(runtime.NewKey().AddString(strconv.Itoa(i)))
		calls.Go(func() {
			time.Sleep(rand.N(crowdComes))
			d, err := limiter.Take(context.Background(), limit)
			if err != nil || d.Source != rule.SourceStore {
				return
			}
			done.Add(1)
			time.Sleep(rand.N(crowdLasts))
			if limiter.Settle(context.Background(), d, 0) == nil {
				done.Add(1)
			}
		})
	}
	calls.Wait()
	return crowded{c, done.Load(), scripts.Load()}
}

// A scriptCount counts the scripts that a client sends.
type scriptCount struct{ atomic.Int64 }

// watch has the scripts counted that a client sends to any server.
func (c *scriptCount) watch(client redis.UniversalClient) {
	count := redistest.Hook(func(cmds []redis.Cmder, send func() error) error {
		for _, cmd := range cmds {
			if strings.HasPrefix(cmd.Name(), "eval") {
				c.Add(1)
			}
		}
		return send()
	})
	if cluster, ok := client.(*redis.ClusterClient); ok {
		cluster.OnNewNode(func(node *redis.Client) { node.AddHook(count) })
		return
	}
	client.AddHook(count)
}

// judgeCrowds has takes and settlements share trips.
func (o *oracle) judgeCrowds() {
	for _, c := range o.crowds {
		o.wrong("takes and settlements share trips", "%d calls: %d were done by %d scripts", c.Calls, c.done, c.scripts)
	}
}
