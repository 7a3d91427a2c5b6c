package main

import (
	"bytes"
	"net"
	"sync"
	"testing"

	"github.com/rategen/rategen/internal/testkit/limittest"
)

// between changes what a server is sent and what it replies, and returns where. What becomes nothing is dropped.
func between(t *testing.T, server string, sent, replied func([]byte) []byte) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	limittest.OK(t, err)
	return relayed(t, listener, server, sent, replied)
}

// unchanged is for a direction in which nothing changes.
func unchanged(text []byte) []byte { return text }

// relayed is between for those who connect to a listener.
func relayed(t *testing.T, listener net.Listener, server string, sent, replied func([]byte) []byte) string {
	var all sync.WaitGroup
	all.Go(func() {
		for {
			outer, err := listener.Accept()
			if err != nil {
				return
			}
			inner, err := net.Dial("tcp", server)
			if err != nil {
				outer.Close()
				continue
			}
			all.Go(func() { carry(inner, outer, sent) })
			all.Go(func() { carry(outer, inner, replied) })
		}
	})
	t.Cleanup(func() { listener.Close(); all.Wait() })
	return listener.Addr().String()
}

// carry writes to one connection what comes from another, until one of them ends.
func carry(to, from net.Conn, change func([]byte) []byte) {
	defer to.Close()
	for buffer := make([]byte, 64<<10); ; {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, failed := to.Write(change(buffer[:n])); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// stallAt returns the address of a Redis that says nothing any more to who sends it a word.
func stallAt(t *testing.T, addr, word string) string {
	t.Helper()
	return between(t, addr, func(sent []byte) []byte {
		if bytes.Contains(bytes.ToLower(sent), []byte(word)) {
			return nil
		}
		return sent
	}, unchanged)
}
