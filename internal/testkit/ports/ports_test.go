package ports_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/rategen/rategen/internal/testkit/ports"
)

// TestClaim has a port claimed once, also while nobody listens there, and not while somebody
// does.
func TestClaim(t *testing.T) {
	listener, err := net.Listen("tcp", ports.Address(0))
	if err != nil {
		t.Fatal(err)
	}
	_, number, _ := net.SplitHostPort(listener.Addr().String())
	port, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	claims := func(want bool) func() {
		t.Helper()
		claim, ok := ports.Claim(port)
		if ok != want {
			t.Fatalf("claimed: %v, want %v", ok, want)
		}
		return func() { _ = claim.Close() }
	}
	claims(false)
	_ = listener.Close()
	release := claims(true)
	claims(false)
	release()
	claims(true)()
}
