package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// A server is a redis-server on a Unix socket in a directory of its own, so
// that no port can be taken.
type server struct {
	dir, socket string
	cmd         *exec.Cmd
}

// startServer starts a server that ends with ctx or stop, and returns when it
// answers.
func startServer(ctx context.Context) (*server, error) {
	dir, err := os.MkdirTemp("", "checker")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, socket: filepath.Join(dir, "redis.sock")}
	s.cmd = exec.CommandContext(ctx, "redis-server",
		"--port", "0", "--unixsocket", s.socket, "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
		"--logfile", filepath.Join(dir, "redis.log"))
	if err := s.cmd.Start(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	client := newClient(s.socket)
	defer client.Close()
	for range 500 {
		if err = client.Ping(ctx).Err(); err == nil {
			return s, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	log, _ := os.ReadFile(filepath.Join(dir, "redis.log"))
	s.stop()
	return nil, fmt.Errorf("redis-server does not answer: %w\n%s", err, log)
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

// freeze stops the server for d several times a second until ctx ends, as a
// loaded machine may do too: mostly in the middle of a script, which then takes
// longer than it should.
func (s *server) freeze(ctx context.Context, d time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100*time.Millisecond + rand.N(100*time.Millisecond)):
		}
		_ = s.cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(d)
		_ = s.cmd.Process.Signal(syscall.SIGCONT)
	}
}

// newClient returns a client that is patient: on a loaded machine a decision
// may take long, but none may get lost.
func newClient(socket string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Network:      "unix",
		Addr:         socket,
		MaxRetries:   -1,
		ReadTimeout:  patience,
		WriteTimeout: patience,
		PoolTimeout:  patience,
	})
}

const patience = time.Minute
