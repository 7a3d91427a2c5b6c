package contest

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/limiters"
	"github.com/rategen/rategen/bench/internal/load"
)

// Events are how many events the keys hold whose size is measured.
var Events = []int{100, 10_000}

// Sizes has limiters over Redis count events on some keys, evenly spread over
// a time, and asks Redis how large the keys are then.
func (p Plan) Sizes(ctx context.Context, client *redis.Client, server limiters.Server) ([]Size, error) {
	if err := client.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	var (
		sizes []Size
		takes []load.Take
	)
	for _, l := range append(limiters.Rategen(), limiters.Peers()...) {
		if l.Floor {
			continue
		}
		take, err := l.New(server, limiters.Long)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
		sizes, takes = append(sizes, Size{Name: l.Name, Note: l.Note, Own: l.Own, Bytes: make([]int64, len(Events))}), append(takes, take)
	}
	// All limiters have their events in the same time, each one its own.
	errs := make(chan error, len(takes))
	for i, take := range takes {
		go func() {
			if err := spread(ctx, p.Fill, func(event int) string { return sizeKey(i, event) }, take); err != nil {
				errs <- fmt.Errorf("%s: %w", sizes[i].Name, err)
				return
			}
			errs <- nil
		}()
	}
	var failed error
	for range takes {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	if failed != nil {
		return nil, failed
	}
	for i := range sizes {
		for j, n := range Events {
			var err error
			if sizes[i].Bytes[j], err = sizeOf(ctx, client, sizeKey(i, n)); err != nil {
				return nil, fmt.Errorf("%s: %w", sizes[i].Name, err)
			}
		}
	}
	return sizes, nil
}

// sizeKey is the key for so many events of the i-th limiter.
func sizeKey(i, events int) string { return fmt.Sprintf("size%02dof%06d", i, events) }

// spread asks about the keys of all Events over a time d.
func spread(ctx context.Context, d time.Duration, key func(int) string, take load.Take) error {
	const ticks = 100
	ticker := time.NewTicker(d / ticks)
	defer ticker.Stop()
	for tick := range ticks {
		for _, n := range Events {
			for range n*(tick+1)/ticks - n*tick/ticks {
				if answer := take(ctx, key(n)); answer != load.Admitted {
					return fmt.Errorf("a call was not admitted, after %d %% of %d", tick, n)
				}
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// sizeOf returns the size of all keys in Redis whose name has a part.
func sizeOf(ctx context.Context, client *redis.Client, part string) (int64, error) {
	names, err := client.Keys(ctx, "*"+part+"*").Result()
	if err != nil {
		return 0, err
	}
	if len(names) == 0 {
		return 0, fmt.Errorf("no key has %q in its name", part)
	}
	var sum int64
	for _, name := range names {
		size, err := client.MemoryUsage(ctx, name, 0).Result()
		if err != nil {
			return 0, err
		}
		sum += size
	}
	return sum, nil
}
