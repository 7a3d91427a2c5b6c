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
	t := new(trial.Trial)
	done := make(chan struct{})
	go func() { // which ends here if there is no server
		defer close(done)
		s = &Server{redistest.Start(t), t.TempDir(), t}
	}()
	<-done
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
	info, err := client.Info(ctx, "commandstats").Result()
	for line := range strings.Lines(info) {
		if stats, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			calls, _, _ := strings.Cut(stats, ",")
			return strconv.Atoi(calls)
		}
	}
	return 0, err
}
