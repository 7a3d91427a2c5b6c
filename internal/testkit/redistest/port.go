package redistest

import (
	"errors"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/rategen/rategen/internal/testkit/ports"
)

const loopback = "127.0.0.1"

// portKind says what a server needs of its port.
type portKind int

const (
	portPlain    portKind = iota
	portSentinel          // a server with --sentinel, which takes fewer options
	portCluster           // a cluster node, which also listens on port+busOffset
)

const busOffset = 10000

// Ports come from below the range that Linux gives to outgoing connections
// (32768 up), bus ports included. With a port of that range, as listening on
// port 0 would give, a client's own connection could take the port of a
// server that is down, and Restart would find it in use.
const (
	portMin = 11000
	portMax = 22000
)

// claims are of the ports that this test binary has used, until it ends: a server that is down
// between Kill and Restart comes back there.
var claims struct {
	sync.Mutex
	all []io.Closer
}

// freePort returns a port that nobody listened on a moment ago. A process that is no test may
// still be faster; the server then says so and start tries the next one.
func freePort(kind portKind) (int, error) {
	for range 1000 {
		port := portMin + rand.IntN(portMax-portMin)
		if claim(port) && (kind != portCluster || claim(port+busOffset)) {
			return port, nil
		}
	}
	return 0, errors.New("no free port found on " + loopback)
}

func claim(port int) bool {
	claim, ok := ports.Claim(port)
	if ok {
		claims.Lock()
		claims.all = append(claims.all, claim)
		claims.Unlock()
	}
	return ok
}
