package redis

import (
	"errors"
	"hash/maphash"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/rediswire"
)

// New returns a router for a client. Nothing may change cfg afterwards.
func New(client rediswire.Client, cfg *Config) *Router {
	r := &Router{cfg: cfg, client: client}
	r.searchBreaker = newBreaker(r, "")
	several, ok := client.(rediswire.Cluster)
	if !ok {
		r.only = newBatcher(r, client)
		return r
	}
	r.several = several
	r.byServer = make(map[rediswire.Server]*batcher)
	if several.Slots() {
		r.cluster = several
		r.bySlot = make([]atomic.Pointer[batcher], slotCount)
	} else {
		r.seed = maphash.MakeSeed()
		r.ready.Store(true)
	}
	if cfg.Refusals != nil {
		cfg.Refusals.Parts()
	}
	return r
}

// reloadInterval is the least time between two reloads of a cluster's topology.
const reloadInterval = 100 * time.Millisecond

// doubt has a cluster's client load the topology again if an error makes it
// doubtful, and does not wait for that. By itself the client does so only once a
// minute or when a node sends it elsewhere, and a dead node sends nobody
// anywhere.
func (r *Router) doubt(err error) {
	if r.cluster == nil || !doubtful(err) {
		return
	}
	now, next := int64(clock.Now()), r.reloadAt.Load()
	if now >= next && r.reloadAt.CompareAndSwap(next, now+int64(reloadInterval)) {
		r.cluster.Reload()
	}
}

// doubtful reports whether after an error keys may be on other servers.
func doubtful(err error) bool {
	var late interface{ Timeout() bool }
	var broken *net.OpError
	var call *os.SyscallError // what go-redis leaves of that for a new connection
	if err == nil || errors.Is(err, ErrOpen) {
		return false
	}
	if script.Replied(err) {
		return script.NotNow(err)
	}
	return errors.As(err, &late) && late.Timeout() || errors.As(err, &broken) || errors.As(err, &call) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}
