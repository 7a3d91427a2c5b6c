package redistest

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/ports"
)

// Server is one redis-server process on a port of its own. All methods may be
// called in any state and from any goroutine; what a test did to a server
// never keeps the cleanup from ending it.
type Server struct {
	Addr string // host:port, the same over every Restart

	tb  testing.TB
	bin string
	log string
	arg []string

	fails func() // tells those who watch it that it is about to fail, or nil

	mu     sync.Mutex
	proc   *process
	paused bool
	closed bool // the test is over: nothing starts any more
}

// Start starts a standalone server and returns when it answers. The arguments
// are for redis-server. The test's cleanup stops it.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return start(tb, portPlain, func(string, int) []string { return slices.Clone(args) })
}

// start starts a server with the arguments that extra gives for its directory
// and port, and takes another port when somebody was faster to take this one.
func start(tb testing.TB, kind portKind, extra func(dir string, port int) []string) *Server {
	tb.Helper()
	bin := Require(tb)
	var err error
	for range 10 {
		var port int
		if port, err = freePort(kind); err != nil {
			break
		}
		dir := tb.TempDir()
		s := &Server{
			Addr: ports.Address(port),
			tb:   tb,
			bin:  bin,
			log:  filepath.Join(dir, "redis.log"),
		}
		if kind != portSentinel {
			s.arg = []string{"--save", "", "--appendonly", "no"}
		}
		s.arg = append(append(s.arg, extra(dir, port)...),
			"--port", strconv.Itoa(port), "--bind", loopback,
			"--dir", dir, "--logfile", s.log, "--daemonize", "no")
		if s.proc, err = s.launch(false); err == nil {
			tb.Cleanup(s.close)
			return s
		}
		if !errors.Is(err, errAddrInUse) {
			break
		}
	}
	tb.Fatalf("start redis: %v", err)
	return nil
}

// Client returns a client of this server with go-redis's default options as
// the functions change them. The test's cleanup closes it.
func (s *Server) Client(tb testing.TB, options ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	opt := &redis.Options{Addr: s.Addr}
	for _, set := range options {
		set(opt)
	}
	client := redis.NewClient(opt)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// ClientAs returns a client of the server as a user of its own, who has the rights that rules of
// ACL SETUSER give.
func (s *Server) ClientAs(tb testing.TB, rules ...any) *redis.Client {
	tb.Helper()
	args := append([]any{"ACL", "SETUSER", "limiter", "reset", "on", "nopass"}, rules...)
	if err := s.Client(tb).Do(context.Background(), args...).Err(); err != nil {
		tb.Fatal(err)
	}
	return s.Client(tb, func(o *redis.Options) { o.Username, o.Password, o.ReadTimeout = "limiter", "any", time.Minute })
}

// Follow makes the server a replica of another one, which the server soon copies.
func (s *Server) Follow(tb testing.TB, master *Server) {
	tb.Helper()
	host, port, _ := net.SplitHostPort(master.Addr)
	// A master waits for more replicas otherwise, for 5 seconds.
	err := master.Client(tb).ConfigSet(context.Background(), "repl-diskless-sync-delay", "0").Err()
	if err = errors.Join(err, s.Client(tb).Do(context.Background(), "REPLICAOF", host, port).Err()); err != nil {
		tb.Fatal(err)
	}
}

// Kill ends the server at once, as a power cut would: its port then refuses
// connections. It does nothing to a server that is down.
func (s *Server) Kill() {
	s.expectFailure()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc.kill()
	s.paused = false
}

// Pause freezes the server. Its port still accepts connections and nobody
// answers on them: the fault that a timeout has to notice. On Linux Pause
// returns when the server has really stopped.
func (s *Server) Pause() {
	s.expectFailure()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc.exited() {
		return
	}
	s.proc.pause()
	s.paused = true
}

// expectFailure tells the cluster or the sentinels of the server, if it has any, that it fails.
func (s *Server) expectFailure() {
	if s.fails != nil {
		s.fails()
	}
}

// Resume lets a paused server go on; it then answers what was sent meanwhile.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc.exited() {
		return
	}
	s.proc.resume()
	s.paused = false
}

// Restart starts the server again on the same port, after killing it if it
// runs or is paused, and returns when it answers. A standalone server comes
// back empty, unless it was started with --appendonly yes; a node of a cluster
// remembers the cluster.
func (s *Server) Restart() {
	s.tb.Helper()
	s.restart(false, func() error { return nil })
}

// restart kills the server, calls prepare, and starts the server again. It
// returns when the server answers, or if loading when it answers LOADING.
func (s *Server) restart(loading bool, prepare func() error) {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.proc.kill()
	s.paused = false
	err := prepare()
	if err == nil {
		var proc *process
		if proc, err = s.launch(loading); err == nil {
			s.proc = proc
		}
	}
	if err != nil {
		// Not Fatal, which only the test's own goroutine may call.
		s.tb.Errorf("restart redis: %v", err)
	}
}

func (s *Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.proc.kill()
}

func (s *Server) port() string {
	_, port, _ := net.SplitHostPort(s.Addr)
	return port
}
