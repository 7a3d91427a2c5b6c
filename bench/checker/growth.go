package main

import (
	"cmp"
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"time"
)

// samples is how often a process looks at what it has in use.
const samples = 30

// A growth is what a process has in use while it hammers, each value after a collection.
type growth struct{ heap, goroutines []int64 }

// watch takes samples until the context ends.
func (g *growth) watch(ctx context.Context, lasts time.Duration) {
	tick := time.NewTicker(max(lasts/samples, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var m goruntime.MemStats
		goruntime.GC()
		goruntime.ReadMemStats(&m)
		g.heap = append(g.heap, int64(m.HeapAlloc))
		g.goroutines = append(g.goroutines, int64(goruntime.NumGoroutine()))
	}
}

// err says what has grown, by more than comes and goes.
func (g *growth) err() error {
	return cmp.Or(grown("bytes of heap", g.heap, 500_000), grown("goroutines", g.goroutines, 10))
}

// grown returns an error if values have grown from the second third of the time to the last by a tenth,
// and by more than that. In the first third a process grows into its work.
func grown(name string, values []int64, comings int64) error {
	third := len(values) / 3
	if third == 0 {
		return nil
	}
	before, after := median(values[third:2*third]), median(values[2*third:])
	if after > before+before/10+comings {
		return fmt.Errorf("%s grew from %d to %d", name, before, after)
	}
	return nil
}

func median(values []int64) int64 { return slices.Sorted(slices.Values(values))[len(values)/2] }
