package redistest

import (
	"net"
	"testing"
)

// TestPortIsClaimed has another process, which claims ports as this one does, find that a port
// is taken although nothing listens there.
func TestPortIsClaimed(t *testing.T) {
	for range 100 {
		port, err := freePort(portPlain)
		if err != nil {
			t.Fatal(err)
		}
		if claim, err := net.ListenPacket("udp", address(port)); err == nil {
			_ = claim.Close()
			t.Fatalf("port %d can be claimed twice", port)
		}
	}
}
