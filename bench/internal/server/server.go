// Package server starts a redis-server for a command.
package server

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// A Server is a redis-server on a Unix socket in a directory of its own, so
// that no port can be taken.
type Server struct {
	Dir    string // removed with the server
	Socket string
	Addr   string // of the port, if it has one
	cmd    *exec.Cmd
}

// Start starts a server that ends with ctx or Stop, and returns when it
// answers.
func Start(ctx context.Context) (*Server, error) { return start(ctx, "0") }

// StartTCP starts a server that has a port of this machine too.
func StartTCP(ctx context.Context) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	s, err := start(ctx, port)
	if err != nil {
		return nil, err
	}
	s.Addr = addr
	return s, nil
}

// binary returns the path of the server to start: of the one that the variable
// RATEGEN_REDIS_SERVER names, as for the tests, or else of redis-server.
func binary() (string, error) {
	path, err := exec.LookPath(cmp.Or(os.Getenv("RATEGEN_REDIS_SERVER"), "redis-server"))
	if err != nil {
		return "", err
	}
	return filepath.Abs(path) // the server runs in a directory of its own
}

func start(ctx context.Context, port string) (*Server, error) {
	bin, err := binary()
	if err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir, Socket: filepath.Join(dir, "redis.sock")}
	s.cmd = exec.CommandContext(ctx, bin,
		"--port", port, "--bind", "127.0.0.1", "--unixsocket", s.Socket, "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
		"--logfile", filepath.Join(dir, "redis.log"))
	if err := s.cmd.Start(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	client := NewClient(s.Socket)
	defer client.Close()
	for range 500 {
		if err = client.Ping(ctx).Err(); err == nil {
			return s, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	log, _ := os.ReadFile(filepath.Join(dir, "redis.log"))
	s.Stop()
	return nil, fmt.Errorf("redis-server does not answer: %w\n%s", err, log)
}

// Stop ends the server and removes its directory.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.Dir)
}

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
		_ = s.cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(d)
		_ = s.cmd.Process.Signal(syscall.SIGCONT)
	}
}

// NewClient returns a client that is patient: on a loaded machine a decision
// may take long, but none may get lost.
func NewClient(socket string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Network:      "unix",
		Addr:         socket,
		MaxRetries:   -1,
		ReadTimeout:  Patience,
		WriteTimeout: Patience,
		PoolTimeout:  Patience,
	})
}

// Patience is how long a client waits before it gives up.
const Patience = time.Minute

// Product returns which server it is, with its version.
func (s *Server) Product(ctx context.Context) (string, error) {
	client := NewClient(s.Socket)
	defer client.Close()
	info, err := client.Info(ctx, "server").Result()
	return redistest.Product(info), err
}

// Calls returns how often a command was called, also by those who found no
// script.
func (s *Server) Calls(ctx context.Context, command string) (int, error) {
	client := NewClient(s.Socket)
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
