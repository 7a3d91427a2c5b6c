package main

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/progress"
)

// progress shows on a terminal how much of the database has been looked at, until
// stop is called.
func (o *operator) progress(ctx context.Context) (stop func()) {
	if !o.shows {
		return func() {}
	}
	o.scans.n.Store(0)
	o.scans.total.Store(0)
	_ = o.masters(ctx, func(ctx context.Context, c *redis.Client) error {
		if _, counted := o.counted.LoadOrStore(c, true); !counted { // a client keeps its hooks, and top walks again and again
			c.AddHook(&o.scans)
		}
		o.scans.total.Add(c.DBSize(ctx).Val())
		return nil
	})
	line := progress.On(o.err)
	o.scans.line.Store(line)
	return func() {
		o.scans.line.Store(nil)
		line.Clear()
	}
}

// surveyBatch is how many keys a SCAN of a survey goes over.
const surveyBatch = 200

// scans is a hook that counts SCAN, and shows how far a walk is.
type scans struct {
	n, total atomic.Int64                  // SCANs so far, and keys
	line     atomic.Pointer[progress.Line] // nil: nobody is shown
}

func (s *scans) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (s *scans) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "scan" {
			s.line.Load().Show("looked at about %d of %d keys", min(s.n.Add(1)*surveyBatch, s.total.Load()), s.total.Load())
		}
		return next(ctx, cmd)
	}
}

func (s *scans) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
