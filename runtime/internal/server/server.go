// Package server inspects the Redis servers of a store: it reads how much memory they use,
// walks over their keys, and finds out whether a proxy shards them. It tells Redis what a process
// has in force, and whom it refuses, and reads that of all processes.
//
// It is handed the client of the store, and functions that it calls with its findings. It
// promises that each inspection ends when its context does or about a second later, and that
// Close returns when none runs any more. It never decides a call. It changes no keys but its
// own, and the expiry of keys that it is asked to heal.
package server

import (
	"context"
	"sync"

	"github.com/rategen/rategen/runtime/rediswire"
)

// Each calls do for every server of a client that holds keys, for all at the same time.
// It returns when all have returned, with the first error.
func Each(ctx context.Context, client rediswire.Client, do func(context.Context, rediswire.Server) error) error {
	several, is := client.(rediswire.Cluster)
	if !is {
		return do(ctx, client)
	}
	servers, err := several.Masters(ctx)
	if err != nil {
		return err
	}
	var (
		all   sync.WaitGroup
		once  sync.Once
		first error
	)
	for _, server := range servers {
		all.Go(func() {
			if err := do(ctx, server); err != nil {
				once.Do(func() { first = err })
			}
		})
	}
	all.Wait()
	return first
}
