package redistest

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// askLimit guards against a server that never answers. A test fails by it.
const askLimit = 2 * time.Minute

// running reports whether the server can be expected to answer.
func (s *Server) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.paused && !s.proc.exited()
}

// ask runs f with a client that lives for this one call.
func (s *Server) ask(f func(context.Context, *redis.Client) error) error {
	if !s.running() {
		return fmt.Errorf("%s is down", s.Addr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	client := redis.NewClient(&redis.Options{
		Addr:                  s.Addr,
		PoolSize:              1,
		MaxRetries:            -1,
		DialerRetries:         1,
		ReadTimeout:           askLimit,
		ContextTimeoutEnabled: true,
	})
	defer client.Close()
	if err := f(ctx, client); err != nil {
		return fmt.Errorf("%s: %w", s.Addr, err)
	}
	return nil
}
