package route

import (
	"context"
	"errors"
	"sync"

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
