package route

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
)

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
		r.cluster.ReloadState(context.Background())
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
