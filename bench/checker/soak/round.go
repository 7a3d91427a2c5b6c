package main

import (
	"context"
	"sync"
	"time"
)

// happen has happen what belongs to a round: an override that changes, processes that
// come and go, and in every second round a fault.
func (d *director) happen(ctx context.Context, round uint32, begin time.Time) (*circumstance, string, error) {
	c := &circumstance{max: overridden}
	if round%2 == 1 {
		c.max = 2 * overridden
	}
	if err := d.override(c.max); err != nil {
		return nil, "", err
	}
	// The files are read every second, unless the machine is too busy.
	c.changed = begin.Add(d.round / 2).UnixMicro()
	sleepUntil(ctx, begin)
	epoch, _ := d.epoch()

	happened := "-"
	var wait sync.WaitGroup
	if round%2 == 1 {
		f := faults[d.faults%len(faults)]
		d.faults++
		happened = f.name
		if f.forgets {
			c.lost[f.site]++
		}
		wait.Go(func() {
			sleepUntil(ctx, begin.Add(d.round/5))
			f.begin(&d.servers)
			sleepUntil(ctx, begin.Add(d.round/5+min(d.round/5, 5*time.Second)))
			f.end(&d.servers)
			c.until[f.site] = time.Now().UnixMicro()
			if f.site == 1 {
				d.turn++
			}
		})
	}
	var err error
	c.killed, err = d.visitors(ctx, round, begin)
	wait.Wait()
	sleepUntil(ctx, begin.Add(calling(d.round)))
	// A node may have taken over though nobody did anything.
	after, known := d.epoch()
	if c.lost[1] += after - epoch; !known {
		c.lost[1]++
	}
	return c, happened, err
}
