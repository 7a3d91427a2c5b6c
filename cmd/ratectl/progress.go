package main

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/progress"
)

// progress shows on a terminal how much of the database has been looked at, until
// stop is called.
func (s *session) progress(ctx context.Context) (stop func()) {
	if !s.shows {
		return func() {}
	}
	s.scans.n.Store(0)
	s.scans.total.Store(0)
	_ = s.Masters(ctx, func(ctx context.Context, c *redis.Client) error {
		if _, is := s.scans.hooked.LoadOrStore(c, true); !is {
			c.AddHook(&s.scans)
		}
		s.scans.total.Add(c.DBSize(ctx).Val())
		return nil
	})
	line := progress.NewLine(s.err)
	s.scans.line.Store(line)
	return func() {
		s.scans.line.Store(nil)
		line.Clear()
	}
}

// A scans is a hook that counts SCAN, and shows how far a walk is.
type scans struct {
	hooked   sync.Map                      // clients that have it: a client keeps its hooks, and top walks again and again
	n, total atomic.Int64                  // SCANs so far, and keys
	line     atomic.Pointer[progress.Line] // nil: nobody is shown
}

func (s *scans) DialHook(next redis.DialHook) redis.DialHook {
	return next
}

func (s *scans) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "scan" {
			s.line.Load().Show("looked at about %d of %d keys", min(s.n.Add(1)*operate.ScanBatch, s.total.Load()), s.total.Load())
		}
		return next(ctx, cmd)
	}
}

func (s *scans) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
