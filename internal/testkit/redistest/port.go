package redistest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
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

// handedOut holds the ports that this test binary has used: a server that is
// down between Kill and Restart still owns its port.
var handedOut = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// freePort returns a loopback port that nobody listened on a moment ago.
// Another process may still be faster; the server then says so and start
// tries the next one.
func freePort(kind portKind) (int, error) {
	handedOut.Lock()
	defer handedOut.Unlock()
	for range 1000 {
		port := portMin + rand.IntN(portMax-portMin)
		if handedOut.ports[port] || !canListen(port) {
			continue
		}
		if kind == portCluster && !canListen(port+busOffset) {
			continue
		}
		handedOut.ports[port] = true
		return port, nil
	}
	return 0, errors.New("no free port found on " + loopback)
}

func canListen(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
