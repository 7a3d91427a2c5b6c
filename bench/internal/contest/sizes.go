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
	if !p.Part.Cases.MatchString(sizeOfKey) {
		return nil, nil
	}
	if err := server.Client.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	contestants := slices.DeleteFunc(p.Part.turns(slices.Concat(limiters.Rategen(), limiters.Budgets(), limiters.Peers())),
		func(l limiters.Limiter) bool { return l.Floor })
	// All limiters have their events in the same time, each one its own.
	sizes := make([]Size, len(contestants))
	var all errgroup.Group
	for i, l := range contestants {
		all.Go(func() (err error) {
			sizes[i].Name = l.Name
			if sizes[i].Bytes, err = p.size(ctx, server, l, fmt.Sprintf("size%02d", i)); err != nil {
				return fmt.Errorf("%s: %w", l.Name, err)
			}
			return nil
		})
	}
	return sizes, all.Wait()
}

// size asks a limiter about a key for each of Fillings over a time, and returns the sizes of these.
func (p Plan) size(ctx context.Context, server limiters.Server, l limiters.Limiter, key string) ([]int64, error) {
	const ticks = 100
	takes, bytes := make([]load.Take, len(Fillings)), make([]int64, len(Fillings))
	keyOf := func(j int) string { return fmt.Sprintf("%sfilling%02d", key, j) }
	var err error
	for j, f := range Fillings {
		if takes[j], err = l.New(server, f.Limits); err != nil {
			return nil, err
		}
	}
	ticker := time.NewTicker(p.Fill / ticks)
	defer ticker.Stop()
	for tick := range ticks {
		for j, f := range Fillings {
			for range f.Events*(tick+1)/ticks - f.Events*tick/ticks {
				if takes[j](ctx, keyOf(j)) != load.Admitted {
					return nil, fmt.Errorf("a call was not admitted, after %d %% of %v", tick, f)
				}
			}
		}
		<-ticker.C
	}
	for j := range bytes {
		if bytes[j], err = sizeOf(ctx, server.Client, keyOf(j)); err != nil {
			return nil, err
		}
	}
	return bytes, nil
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
