package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// progress shows on a terminal how much of the database has been looked at, until
// stop is called.
func (o *operator) progress(ctx context.Context) (stop func()) {
	if !o.shows {
		return func() {}
	}
	o.scans.n.Store(0)
	var total atomic.Int64
	_ = o.masters(ctx, func(ctx context.Context, c *redis.Client) error {
		if _, counted := o.counted.LoadOrStore(c, true); !counted { // a client keeps its hooks, and top walks again and again
			c.AddHook(&o.scans)
		}
		total.Add(c.DBSize(ctx).Val())
		return nil
	})
	ended := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(o.err, "\rlooked at about %d of %d keys ", min(o.scans.n.Load()*surveyBatch, total.Load()), total.Load())
			case <-ended:
				fmt.Fprint(o.err, "\r\033[K")
				return
			}
		}
	})
	return func() { close(ended); shown.Wait() }
}

// surveyBatch is how many keys a SCAN of a survey goes over.
const surveyBatch = 200

// scans is a hook that counts SCAN.
type scans struct{ n atomic.Int64 }

func (s *scans) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (s *scans) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "scan" {
			s.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (s *scans) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
