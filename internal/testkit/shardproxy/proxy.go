// Package shardproxy is a proxy for tests that shards keys over several servers,
// as twemproxy and Codis do: a command goes to the server that the hash of its
// first key falls to, a script with all its keys too, and nobody checks the
// others.
//
//	proxy := shardproxy.Start(t, a.Addr, b.Addr, c.Addr)
//	client := redis.NewClient(&redis.Options{Addr: proxy.Addr})
package shardproxy

import (
	"bufio"
	"hash/fnv"
	"net"
	"strings"
	"sync"
	"testing"
)

// A Proxy carries commands to its servers.
type Proxy struct {
	Addr string

	servers []string
	tags    bool
	wait    sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	ended bool
}

// Start starts a proxy to servers. The test's cleanup ends it.
func Start(tb testing.TB, servers ...string) *Proxy { return start(tb, false, servers) }

// StartTagged starts a proxy that takes a hash tag for the key, if there is one.
func StartTagged(tb testing.TB, servers ...string) *Proxy { return start(tb, true, servers) }

func start(tb testing.TB, tags bool, servers []string) *Proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("start a proxy: %v", err)
	}
	p := &Proxy{Addr: listener.Addr().String(), servers: servers, tags: tags, conns: make(map[net.Conn]struct{})}
	p.wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if p.keep(conn) {
				p.wait.Go(func() { p.serve(conn) })
			}
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		p.ended = true
		for conn := range p.conns {
			_ = conn.Close()
		}
		p.mu.Unlock()
		p.wait.Wait()
	})
	return p
}

// keep notes a connection that is to be closed at the end.
func (p *Proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		_ = conn.Close()
		return false
	}
	p.conns[conn] = struct{}{}
	return true
}

func (p *Proxy) drop(conn net.Conn) {
	_ = conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

// serve carries the commands of a connection, one after the other.
func (p *Proxy) serve(client net.Conn) {
	defer p.drop(client)
	in := bufio.NewReader(client)
	servers := make([]net.Conn, len(p.servers))
	replies := make([]*bufio.Reader, len(p.servers))
	for {
		words, raw, err := readCommand(in)
		if err != nil {
			return
		}
		i := p.server(words)
		if servers[i] == nil {
			conn, err := net.Dial("tcp", p.servers[i])
			if err != nil || !p.keep(conn) {
				return
			}
			defer p.drop(conn)
			servers[i], replies[i] = conn, bufio.NewReader(conn)
		}
		if _, err := servers[i].Write(raw); err != nil {
			return
		}
		reply, err := readReply(replies[i], nil)
		if err != nil {
			return
		}
		if _, err := client.Write(reply); err != nil {
			return
		}
	}
}

// server returns where a command goes: by its first key, and without one to the
// first server.
func (p *Proxy) server(words []string) int {
	key := ""
	name := strings.ToLower(words[0])
	if name == "eval" || name == "evalsha" {
		if len(words) > 3 {
			key = words[3]
		}
	} else if name == "hello" || name == "client" || name == "ping" || name == "info" || len(words) == 1 {
		return 0
	} else {
		key = words[1]
	}
	if start := strings.IndexByte(key, '{'); p.tags && start >= 0 {
		if length := strings.IndexByte(key[start+1:], '}'); length > 0 {
			key = key[start+1 : start+1+length]
		}
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key))
	return int(hash.Sum64() >> 33 % uint64(len(p.servers)))
}
