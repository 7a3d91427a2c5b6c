// Package ports keeps the ports of test servers from other test binaries. A server that is
// down for a while still owns its port: without a claim the server of another binary could
// answer there.
package ports

import (
	"io"
	"net"
	"strconv"
)

// Claim claims a port of this machine on which nobody listens, until the claim is closed or
// the process ends. It returns false if another caller has claimed the port, or something
// listens there. The claim is the UDP port of the same number, which no test server uses.
func Claim(port int) (claim io.Closer, ok bool) {
	claim, err := net.ListenPacket("udp", Address(port))
	if err != nil {
		return nil, false
	}
	listener, err := net.Listen("tcp", Address(port))
	if err != nil {
		_ = claim.Close()
		return nil, false
	}
	_ = listener.Close()
	return claim, true
}

// Address returns the address of a port on the loopback interface.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
