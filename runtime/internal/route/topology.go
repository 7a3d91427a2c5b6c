package route

import (
	"errors"
	"hash/maphash"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/slots"
	"github.com/rategen/rategen/runtime/rediswire"
)

// New returns a router for a client. It completes cfg, which must not be used otherwise.
func New(client rediswire.Client, cfg *batch.Config) *Router {
	r := &Router{cfg: cfg, client: client}
	cfg.Doubt, cfg.Moved, cfg.Server = r.Doubt, r.moved, r.server
	r.asking = breaker.New(cfg.Timeout, func(open bool) { cfg.Changed("", open) })
	several, is := client.(rediswire.Cluster)
	if !is {
		r.only = batch.New(cfg, client)
		return r
	}
	r.several, cfg.Router = several, several
	if several.Slots() {
		r.cluster = several
		r.slot = slots.Slot
		r.bySlot = make([]atomic.Pointer[batch.Batcher], slots.Count)
	} else {
		seed := maphash.MakeSeed()
		r.slot = func(key []byte) int { return int(maphash.Bytes(seed, slots.HashTag(key))) }
		r.ready.Store(true)
	}
	if cfg.Denials != nil {
		cfg.Denials.Parts()
	}
	r.byServer = make(map[rediswire.Server]*batch.Batcher)
	changed := cfg.Changed
	cfg.Changed = func(node string, open bool) {
		if changed(node, open); open {
			r.watchLeaving()
		}
	}
	return r
}

// reloadInterval is the least time between two reloads of a cluster's topology.
const reloadInterval = 100 * time.Millisecond

// Doubt has a cluster's client load the topology again if an error makes it
// doubtful, and does not wait for that. By itself the client does so only once a
// minute or when a node sends it elsewhere, and a dead node sends nobody
// anywhere.
func (r *Router) Doubt(err error) {
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
	switch {
	case err == nil, errors.Is(err, breaker.ErrOpen):
		return false
	case script.Replied(err):
		return script.NotNow(err)
	}
	return errors.As(err, &late) && late.Timeout() || errors.As(err, &broken) || errors.As(err, &call) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}
