package faultproxy_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// An echo is a server that answers every line with the same line, and
// remembers it. It hangs up after bye.
type echo struct {
	net.Listener
	wait sync.WaitGroup

	mu    sync.Mutex
	lines []string
	conns []net.Conn
}

func startEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{Listener: listener}
	t.Cleanup(e.stop)
	e.wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			e.mu.Lock()
			e.conns = append(e.conns, conn)
			e.mu.Unlock()
			e.wait.Go(func() { e.serve(conn) })
		}
	})
	return e
}

func (e *echo) serve(conn net.Conn) {
	defer conn.Close()
	for reader := bufio.NewReader(conn); ; {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		e.mu.Lock()
		e.lines = append(e.lines, line)
		e.mu.Unlock()
		if _, err := io.WriteString(conn, line); err != nil || line == bye {
			return
		}
	}
}

const bye = "bye\n"

func (e *echo) stop() {
	_ = e.Close()
	e.mu.Lock()
	for _, conn := range e.conns {
		_ = conn.Close()
	}
	e.mu.Unlock()
	e.wait.Wait()
}

// heard reports whether the server has read the line, sooner or later.
func (e *echo) heard(line string, within time.Duration) bool {
	for until := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		e.mu.Lock()
		for _, l := range e.lines {
			if l == line {
				e.mu.Unlock()
				return true
			}
		}
		e.mu.Unlock()
		if time.Now().After(until) {
			return false
		}
	}
}

// A caller is a connection through the proxy.
type caller struct {
	net.Conn
	reader *bufio.Reader
}

func dial(t *testing.T, p *faultproxy.Proxy) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &caller{conn, bufio.NewReader(conn)}
}

func (c *caller) send(line string) { _, _ = io.WriteString(c, line) }

// answer returns the next line, or the error of none within d.
func (c *caller) answer(d time.Duration) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(d))
	return c.reader.ReadString('\n')
}

// want wants the next line to be an answer.
func (c *caller) want(t *testing.T, line string) {
	t.Helper()
	if got, err := c.answer(10 * time.Second); got != line || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, line)
	}
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func start(t *testing.T) (*echo, *faultproxy.Proxy) {
	t.Helper()
	e := startEcho(t)
	return e, faultproxy.Start(t, e.Addr().String())
}

func TestReset(t *testing.T) {
	t.Parallel()
	_, p := start(t)
	before := dial(t, p)
	before.send("a\n")
	before.want(t, "a\n")
	p.Reset()
	if _, err := before.answer(10 * time.Second); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an old connection: %v", err)
	}
	// Accepted and reset: sooner or later for the one who dials.
	if conn, err := net.Dial("tcp", p.Addr); err == nil {
		c := &caller{conn, bufio.NewReader(conn)}
		c.send("a\n")
		if got, err := c.answer(10 * time.Second); err == nil || timedOut(err) {
			t.Errorf("a new connection: %q, %v", got, err)
		}
		_ = conn.Close()
	}
	p.Pass()
	c := dial(t, p)
	c.send("b\n")
	c.want(t, "b\n")
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	_, p := start(t)
	before := dial(t, p)
	before.send("a\n")
	before.want(t, "a\n")
	for range 2 {
		p.Refuse()
		if _, err := net.Dial("tcp", p.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a new connection: %v", err)
		}
	}
	if _, err := before.answer(10 * time.Second); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an old connection: %v", err)
	}
	p.Pass()
	c := dial(t, p)
	c.send("b\n")
	c.want(t, "b\n")
}

// TestClose closes a proxy in the middle of all that it can do, which is also
// what the race detector is to see.
func TestClose(t *testing.T) {
	t.Parallel()
	e, p := start(t)
	var wait sync.WaitGroup
	stop := make(chan struct{})
	for range 8 {
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				conn, err := net.Dial("tcp", p.Addr)
				if err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				c := &caller{conn, bufio.NewReader(conn)}
				for range 20 {
					c.send("a\n")
					if _, err := c.answer(20 * time.Millisecond); err != nil {
						break
					}
				}
				_ = conn.Close()
			}
		})
	}
	for range 5 {
		for _, set := range []func(){
			p.Pass, p.DropReplies, p.CutReplies, p.Stall, p.Reset, p.Refuse,
			func() { p.Delay(time.Millisecond) },
		} {
			set()
			time.Sleep(3 * time.Millisecond)
		}
	}
	p.Stall()
	p.Close()
	close(stop)
	wait.Wait()
	if _, err := net.Dial("tcp", p.Addr); err == nil {
		t.Error("a closed proxy takes connections")
	}
	p.Pass() // does nothing any more
	p.Close()
	if !e.heard("a\n", 0) {
		t.Error("nothing ever arrived")
	}
}
