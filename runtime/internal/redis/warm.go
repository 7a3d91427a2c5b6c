package redis

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

// Warm makes the connections to every server that its first batches need, and loads the
// scripts that decide some limits.
func (r *Router) Warm(ctx context.Context, limits []terms.Terms) error {
	return private.Hide(server.Each(ctx, r.client, func(ctx context.Context, s rediswire.Server) error {
		return r.warm(ctx, s, limits)
	}))
}

func (r *Router) warm(ctx context.Context, s rediswire.Server, limits []terms.Terms) error {
	var pinged sync.WaitGroup
	ping := []rediswire.Command{{Args: []string{"ping"}}}
	pinged.Go(func() { s.Do(ctx, ping) }) // by a connection of its own
	err := r.cfg.Library.Load(ctx, s, limits)
	pinged.Wait()
	return errors.Join(err, private.Hide(rediswire.First(ping)))
}

// warm is called after a slow batch. It makes connections ahead of need when Redis is far away,
// which a few of them in a row show: to make one takes several round trips, longer than a
// caller waits, and as many are needed as batches are sent while one is under way.
func (b *batcher) warm(took time.Duration) {
	need := min(b.limit, baseInFlight+int(took/b.linger)+1)
	if b.slow.Add(1) < farAfter || b.server.About().Connections >= need {
		return
	}
	now, last := int64(clock.Now()), b.warmedAt.Load()
	if now-last < int64(time.Second) || !b.warmedAt.CompareAndSwap(last, now) {
		return
	}
	for range need {
		go func() {
			defer func() { _ = recover() }() // a hook's, which the next batch reports
			ctx, cancel := context.WithTimeout(context.Background(), minBatchTime)
			defer cancel()
			b.server.Do(ctx, []rediswire.Command{{Args: []string{"ping"}}})
		}()
	}
}
