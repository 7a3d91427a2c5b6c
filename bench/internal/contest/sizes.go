package contest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/rategen/rategen/bench/internal/limiters"
	"github.com/rategen/rategen/bench/internal/load"
)

// A Filling is what a key holds whose size is measured.
type Filling struct {
	Events int
	Limits limiters.Limits
}

// String returns the filling as a heading has it.
func (f Filling) String() string {
	return fmt.Sprintf("%s events, max=%s", thousands(f.Events), thousands(int(f.Limits.Log.Max)))
}

// Fillings are what the keys hold whose size is measured: a key may be larger
// where more is to come.
var Fillings = []Filling{{100, limiters.Long}, {10_000, limiters.Long}, {10_000, limiters.Tight}}

// Sizes has limiters over Redis count events on some keys, evenly spread over
// a time, and asks Redis how large the keys are then.
func (p Plan) Sizes(ctx context.Context, server limiters.Server) ([]Size, error) {
	client := server.Client
	if !p.Part.heading(sizeOfKey) {
		return nil, nil
	}
	if err := client.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	var (
		sizes []Size
		takes [][]load.Take // for each of Fillings
	)
	for _, l := range p.Part.turns(slices.Concat(limiters.Rategen(), limiters.Budgets(), limiters.Peers())) {
		if l.Floor {
			continue
		}
		fillers := make([]load.Take, len(Fillings))
		for j, f := range Fillings {
			var err error
			if fillers[j], err = l.New(server, f.Limits); err != nil {
				return nil, fmt.Errorf("%s: %w", l.Name, err)
			}
		}
		sizes = append(sizes, Size{Name: l.Name, Bytes: make([]int64, len(Fillings))})
		takes = append(takes, fillers)
	}
	// All limiters have their events in the same time, each one its own.
	var all errgroup.Group
	for i, fillers := range takes {
		all.Go(func() error {
			if err := spread(ctx, p.Fill, i, fillers); err != nil {
				return fmt.Errorf("%s: %w", sizes[i].Name, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	for i := range sizes {
		for j := range Fillings {
			var err error
			if sizes[i].Bytes[j], err = sizeOf(ctx, client, sizeKey(i, j)); err != nil {
				return nil, fmt.Errorf("%s: %w", sizes[i].Name, err)
			}
		}
	}
	return sizes, nil
}

// sizeKey is the i-th limiter's key for the j-th of Fillings.
func sizeKey(i, j int) string { return fmt.Sprintf("size%02dfilling%02d", i, j) }

// spread asks the i-th limiter about its keys for all Fillings over a time d.
func spread(ctx context.Context, d time.Duration, i int, fillers []load.Take) error {
	const ticks = 100
	ticker := time.NewTicker(d / ticks)
	defer ticker.Stop()
	for tick := range ticks {
		for j, f := range Fillings {
			key := sizeKey(i, j)
			for range f.Events*(tick+1)/ticks - f.Events*tick/ticks {
				if answer := fillers[j](ctx, key); answer != load.Admitted {
					return fmt.Errorf("a call was not admitted, after %d %% of %v", tick, f)
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
