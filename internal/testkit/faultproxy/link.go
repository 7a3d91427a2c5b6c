package faultproxy

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	chunkSize = 32 << 10
	// queued is how many chunks of replies a link holds back; then it stops
	// reading, as a network would whose buffers are full.
	queued = 256
	// dialLimit bounds how long a link tries to reach its target.
	dialLimit = 5 * time.Second
)

// A link is one connection from a client through the proxy to its target.
type link struct {
	proxy  *Proxy
	client net.Conn

	ctx    context.Context // ends with the link
	cancel context.CancelFunc

	mu     sync.Mutex
	server net.Conn // nil until the target is reached
}

func newLink(p *Proxy, client net.Conn) *link {
	l := &link{proxy: p, client: client}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// A chunk is some bytes of a reply.
type chunk struct {
	data []byte
	at   time.Time // when it came
}

// run carries the connection until one of both ends closes it or the proxy
// ends it.
func (l *link) run() {
	defer l.end()
	dialer := net.Dialer{Timeout: dialLimit}
	server, err := dialer.DialContext(l.ctx, "tcp", l.proxy.target)
	if err != nil || !l.attach(server) {
		return
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(l.requests)
	replies := make(chan chunk, queued)
	wait.Go(func() {
		defer close(replies)
		l.read(replies)
	})
	l.write(replies)
	l.end()
}

// attach gives the link its second connection, or closes that if the link is
// over already.
func (l *link) attach(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		_ = server.Close()
		return false
	}
	l.server = server
	return true
}

// reset ends the link, and what is on its way to the client is lost.
func (l *link) reset() {
	if tcp, ok := l.client.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	l.end()
}

// end closes both connections.
func (l *link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel()
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// requests carries what the client sends.
func (l *link) requests() {
	defer l.end()
	buffer := make([]byte, chunkSize)
	for {
		n, err := l.client.Read(buffer)
		for fault, _, changed := l.proxy.state(); fault == stall; fault, _, changed = l.proxy.state() {
			select {
			case <-changed:
			case <-l.ctx.Done():
				return
			}
		}
		_, failed := l.server.Write(buffer[:n])
		if err != nil || failed != nil {
			return
		}
	}
}

// read reads replies until the server closes the connection.
func (l *link) read(replies chan<- chunk) {
	for {
		data := make([]byte, chunkSize)
		n, err := l.server.Read(data)
		if n > 0 {
			select {
			case replies <- chunk{data[:n], time.Now()}:
			case <-l.ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// write gives the client its replies, or does with them what the proxy has
// been told. It returns when the link is over, or all replies of a server that
// has closed are written.
func (l *link) write(replies <-chan chunk) {
	for reply := range replies {
		fault, delay, changed := l.proxy.state()
		for fault == stall || fault == pass && time.Since(reply.at) < delay {
			var due <-chan time.Time
			if fault == pass {
				due = time.After(delay - time.Since(reply.at))
			}
			select {
			case <-due:
			case <-changed:
			case <-l.ctx.Done():
				return
			}
			fault, delay, changed = l.proxy.state()
		}
		if fault == drop {
			continue
		}
		if fault != pass {
			return
		}
		if _, err := l.client.Write(reply.data); err != nil {
			return
		}
	}
}
