package raterueidis

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/rediswire"
)

// A node is a server of a cluster.
type node struct {
	cluster *cluster
	address string
	known   atomic.Pointer[server] // nil: the client has to be asked for it
}

// server returns the way to the node: past the client of the cluster, or while that does
// not know it by that, which finds it by the key.
func (n *node) server() *server {
	if s := n.known.Load(); s != nil {
		return s
	}
	if client := n.cluster.client.Nodes()[n.address]; client != nil {
		s := &server{client: client}
		n.known.Store(s)
		return s
	}
	return n.cluster.server
}

// Execute implements [rediswire.Server].
func (n *node) Execute(ctx context.Context, scripts []*rediswire.Script) {
	s := n.server()
	if s.routed {
		for _, script := range scripts {
			script.Asking = false // the client of the cluster asks by itself
		}
	}
	s.Execute(ctx, scripts)
	for _, script := range scripts {
		n.heed(s, script.Err)
	}
}

// Do implements [rediswire.Server].
func (n *node) Do(ctx context.Context, commands []rediswire.Command) {
	s := n.server()
	s.Do(ctx, commands)
	for i := range commands {
		n.heed(s, commands[i].Err)
	}
}

// heed goes by what an error says of the cluster.
func (n *node) heed(s *server, err error) {
	switch {
	case err == nil:
	case errors.Is(err, rediswire.ErrClosed):
		n.known.CompareAndSwap(s, nil)
	default:
		n.cluster.moved(err)
	}
}

// About implements [rediswire.Server].
func (n *node) About() rediswire.About {
	return rediswire.About{Address: n.address, Punctual: true}
}

// Patient implements [rediswire.Server].
func (n *node) Patient(time.Duration) rediswire.Server { return n }
