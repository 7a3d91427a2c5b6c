// Package faultproxy puts a TCP proxy between a client and a server. A test lets it
// fail as networks do: delay replies, go silent, reset connections, refuse them, or
// lose replies.
//
//	server := redistest.Start(t)
//	proxy := faultproxy.Start(t, server.Addr)
//	client := redis.NewClient(&redis.Options{Addr: proxy.Addr})
//	...
//	proxy.Stall()
//	...
//	proxy.Pass()
package faultproxy

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/ports"
)

// A fault is what a proxy does to the connections that it carries.
type fault uint8

const (
	pass   fault = iota // carry them, replies later by the delay
	stall               // accept everything and carry nothing
	drop                // carry requests, and throw replies away
	cut                 // carry requests, and end a connection instead of a reply
	reset               // reset what is there and whatever comes
	refuse              // the same, and do not listen
)

// A Proxy carries connections to its target. Its methods may be called at any
// time and from any goroutine; what one of them sets holds, for the connections
// that there are as for new ones, until the next sets something else.
type Proxy struct {
	Addr string // host:port, the same for as long as the proxy lives

	tb     testing.TB
	target string
	claim  io.Closer // of the port, which is the proxy's while it refuses, too
	wait   sync.WaitGroup

	mu       sync.Mutex
	fault    fault
	delay    time.Duration
	changed  chan struct{} // closed when another fault is set
	listener net.Listener  // nil: it refuses
	links    map[*link]struct{}
	closed   bool
}

// The ports of proxies come from below the range that Linux gives to outgoing
// connections, one of which could otherwise take the port while the proxy
// refuses, and from outside of those that redistest uses.
const (
	portMin = 10000
	portMax = 11000
)

// Start starts a proxy for the server at target that carries everything. The
// test's cleanup closes it.
func Start(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p := &Proxy{tb: tb, target: target, changed: make(chan struct{}), links: map[*link]struct{}{}}
	for range 100 {
		port := portMin + rand.IntN(portMax-portMin)
		claim, ok := ports.Claim(port)
		if !ok {
			continue
		}
		p.Addr, p.claim = ports.Address(port), claim
		if err := p.listen(); err == nil {
			tb.Cleanup(p.Close)
			return p
		}
		_ = claim.Close()
	}
	tb.Fatalf("start a proxy: no free port between %d and %d", portMin, portMax)
	return nil
}

// Pass carries everything, also what Stall has held back.
func (p *Proxy) Pass() { p.set(pass, 0) }

// Delay carries everything, replies later by d. That bounds no throughput: a
// second reply is not later because the first one is on its way.
func (p *Proxy) Delay(d time.Duration) { p.set(pass, d) }

// Stall accepts connections and whatever is sent on them, and carries nothing
// either way: what a caller sees of a network that has split.
func (p *Proxy) Stall() { p.set(stall, 0) }

// DropReplies carries requests, so that they are executed, and throws replies
// away. Connections stay.
func (p *Proxy) DropReplies() { p.set(drop, 0) }

// CutReplies carries requests, so that they are executed, and closes a
// connection at the moment in which a reply to it comes.
func (p *Proxy) CutReplies() { p.set(cut, 0) }

// Reset resets every connection that there is, and new ones at once.
func (p *Proxy) Reset() { p.set(reset, 0) }

// Refuse resets every connection that there is and refuses new ones.
func (p *Proxy) Refuse() { p.set(refuse, 0) }

// Close resets all connections, and returns when nothing of the proxy runs any
// more.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.hush()
	p.mu.Unlock()
	p.wait.Wait()
	_ = p.claim.Close()
}

func (p *Proxy) set(f fault, delay time.Duration) {
	p.tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.fault, p.delay = f, delay
	close(p.changed)
	p.changed = make(chan struct{})
	switch f {
	case refuse:
		p.hush()
	case reset:
		p.resetLinks()
	}
	if f != refuse && p.listener == nil {
		if err := p.listenAgain(); err != nil {
			// Not Fatal, which only the test's own goroutine may call.
			p.tb.Errorf("proxy: listen again: %v", err)
		}
	}
}

// state returns what holds now, and a channel that is closed when it does not
// any more.
func (p *Proxy) state() (fault, time.Duration, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault, p.delay, p.changed
}

// listenAgain listens on the port that the proxy had. Another process may look
// whether it is free just now.
func (p *Proxy) listenAgain() (err error) {
	for range 100 {
		if err = p.listen(); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

func (p *Proxy) listen() error {
	listener, err := net.Listen("tcp", p.Addr)
	if err != nil {
		return err
	}
	p.listener = listener
	p.wait.Go(func() { p.accept(listener) })
	return nil
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // it is closed
		}
		p.carry(conn)
	}
}

// carry starts a link for a connection that was accepted.
func (p *Proxy) carry(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := newLink(p, client)
	if p.closed || p.fault == reset || p.fault == refuse {
		l.reset()
		return
	}
	p.links[l] = struct{}{}
	p.wait.Go(func() {
		l.run()
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	})
}

// hush stops listening and resets all connections.
func (p *Proxy) hush() {
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	p.resetLinks()
}

func (p *Proxy) resetLinks() {
	for l := range p.links {
		l.reset()
	}
}
