package slots

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/rediswire"
)

// A node is a server of a cluster, as a [rediswire.Server].
type node struct {
	cluster *Cluster
	address string
	known   atomic.Pointer[way] // nil: the client has to be asked for it
}

// A way leads to a server.
type way struct {
	rediswire.Server
	around bool // past the client of the cluster
}

// way returns the way to the node: past the client of the cluster, or while that does
// not know it by that, which finds it by the key.
func (n *node) way() *way {
	if w := n.known.Load(); w != nil {
		return w
	}
	if server := n.cluster.Nodes()[n.address]; server != nil {
		w := &way{server, true}
		n.known.Store(w)
		return w
	}
	return &way{n.cluster.Client, false}
}

func (n *node) Execute(ctx context.Context, scripts []*rediswire.Script) {
	w := n.way()
	if !w.around {
		for _, script := range scripts {
			script.Asking = false // the client of the cluster asks by itself
		}
	}
	w.Execute(ctx, scripts)
	for _, script := range scripts {
		n.noteError(w, script.Err)
	}
}

func (n *node) Do(ctx context.Context, commands []rediswire.Command) {
	w := n.way()
	w.Do(ctx, commands)
	for i := range commands {
		n.noteError(w, commands[i].Err)
	}
}

// noteError has the cluster asked anew, or the connection dropped, if an error says so.
func (n *node) noteError(w *way, err error) {
	if err == nil {
		return
	}
	if errors.Is(err, rediswire.ErrClosed) {
		n.known.CompareAndSwap(w, nil)
	} else {
		n.cluster.moved(err)
	}
}

func (n *node) About() rediswire.About {
	return rediswire.About{Address: n.address, Punctual: true}
}

func (n *node) Patient(time.Duration) rediswire.Server { return n }
