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

// claims hold the UDP ports of the numbers that this test binary has used, until it ends. A
// server that is down between Kill and Restart still owns its port: without a claim the server
// of another binary could answer there.
var claims struct {
	sync.Mutex
	all []net.PacketConn
}

// freePort returns a loopback port that nobody listened on a moment ago.
// A process that is no test may still be faster; the server then says so and start
// tries the next one.
func freePort(kind portKind) (int, error) {
	claims.Lock()
	defer claims.Unlock()
	for range 1000 {
		port := portMin + rand.IntN(portMax-portMin)
		claim, err := net.ListenPacket("udp", address(port))
		if err != nil {
			continue
		}
		claims.all = append(claims.all, claim)
		if canListen(port) && (kind != portCluster || canListen(port+busOffset)) {
			return port, nil
		}
	}
	return 0, errors.New("no free port found on " + loopback)
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

func canListen(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
