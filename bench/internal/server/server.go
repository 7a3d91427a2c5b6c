// Package server starts a redis-server for a command, as tests start theirs.
package server

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/trial"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

// A Server is a redis-server on a port of this machine.
type Server struct {
	*redistest.Server
	Dir   string // for the command's own files, removed with the server
	trial *trial.Trial
}

// Start starts a server and returns when it answers.
func Start() (*Server, error) {
	var s *Server
	t := trial.Start(func(t *trial.Trial) { s = &Server{redistest.Start(t), t.TempDir(), t} })
	if s == nil {
		t.End()
		return nil, errors.New("no redis-server was started")
	}
	return s, nil
}

// Stop ends the server and removes its directory.
func (s *Server) Stop() { s.trial.End() }

// Freeze stops the server for d several times a second until ctx ends, as a
// loaded machine may do too: mostly in the middle of a script, which then takes
// longer than it should.
func (s *Server) Freeze(ctx context.Context, d time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100*time.Millisecond + rand.N(100*time.Millisecond)):
		}
		s.Pause()
		time.Sleep(d)
		s.Resume()
	}
}

// NewClient returns a client that is patient: on a loaded machine a decision
// may take long, but none may get lost.
func NewClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, ReadTimeout: Patience, WriteTimeout: Patience, PoolTimeout: Patience,
	})
}

// Patience is how long a client waits before it gives up.
const Patience = time.Minute

// Calls returns how often a command was called, also by those who found no
// script.
func (s *Server) Calls(ctx context.Context, command string) (int, error) {
	client := NewClient(s.Addr)
	defer client.Close()
	info := client.InfoMap(ctx, "commandstats")
	stats := info.Item("Commandstats", "cmdstat_"+command)
	calls, _, _ := strings.Cut(strings.TrimPrefix(stats, "calls="), ",")
	n, _ := strconv.Atoi(calls) // none is listed that was never called
	return n, info.Err()
}
