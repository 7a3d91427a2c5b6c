package spec

import (
	"testing"
	"time"
)

// TestCheck tries options with each other that do not go together, and those that do.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		ok   bool
	}{
		{Rule{Window: time.Second}, true},
		{Rule{Window: time.Second, Resolution: time.Second}, true},
		{Rule{Window: time.Second, Resolution: time.Second + time.Microsecond}, false},
		{Rule{Window: time.Second, Resolution: time.Nanosecond}, false},
		{Rule{Window: time.Second, Resolution: -time.Second}, false},
		{Rule{Window: time.Second, Block: MaxWindow}, true},
		{Rule{Window: time.Second, Block: MaxWindow + 1}, false},
		{Rule{Window: time.Second, Block: MinWindow}, true},
		{Rule{Window: time.Second, Block: MinWindow - 1}, false},
		{Rule{Window: time.Second, Block: -1}, false},
		{Rule{Window: time.Second, Block: time.Second, Wait: 1}, false},
		{Rule{Window: time.Second, Block: time.Second, Algorithm: "concurrency"}, false},
		{Rule{Window: time.Second, Block: time.Second, Lease: time.Millisecond}, false},
		{Rule{Window: time.Second, Lease: time.Second - time.Microsecond}, true},
		{Rule{Window: time.Second, Lease: time.Second}, false},
		{Rule{Window: time.Second, Lease: time.Microsecond}, false},
		{Rule{Window: time.Second, Lease: MinLease + 1}, false},
		{Rule{Window: time.Second, Lease: -time.Second}, false},
		{Rule{Window: time.Second, Lease: MinLease, Algorithm: "concurrency"}, false},
		{Rule{Window: time.Second, Lease: MinLease, Algorithm: "leaky-bucket"}, true},
		{Rule{Window: time.Second, Lease: MinLease, Algorithm: "leaky-bucket", Wait: 1}, false},
		{Rule{Window: time.Second, Lease: MinLease, Algorithm: "token-bucket", Wait: 1}, true},
	} {
		if err := c.rule.Check(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.rule, err)
		}
	}
}
