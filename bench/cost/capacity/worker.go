package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// work makes one process's share of the calls on the Redis at a socket, each when it
// is due whether or not those before are answered, and prints a tally.
func work(ctx context.Context, socket string, t traffic, p plan) error {
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Network: "unix", Addr: socket}))
	defer client.Close()
	limiter := runtime.New(runtime.NewRedisStore(client), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	defer func() { _ = limiter.Close() }()
	rule := &runtime.Rule{Name: "capacity", Window: p.Window, Max: p.Max, Lease: p.Lease}
	var admitted, refused, undecided, local atomic.Int64
	var wait sync.WaitGroup
	calls := t.calls(rand.New(rand.NewPCG(p.Seed, 2)), 1/float64(p.Processes))
	begin := time.Now()
	for at, key, more := calls.next(); more && ctx.Err() == nil; at, key, more = calls.next() {
		if early := at - time.Since(begin); early > 0 {
			time.Sleep(early)
		}
		wait.Go(func() {
			d, err := limiter.Take(ctx, rule.Limit(runtime.NewKey().AddInt(int64(key))))
			switch {
			case d.Source == runtime.SourceFailure:
				undecided.Add(1)
			case err == nil:
				admitted.Add(1)
			case errors.Is(err, runtime.ErrLimited):
				refused.Add(1)
			default:
				undecided.Add(1)
			}
			if d.Source == runtime.SourceRecalled || d.Source == runtime.SourceLease {
				local.Add(1)
			}
		})
	}
	wait.Wait()
	return json.NewEncoder(os.Stdout).Encode(tally{
		int(admitted.Load()), int(refused.Load()), int(undecided.Load()), int(local.Load()),
	})
}
