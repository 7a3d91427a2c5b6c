package report

import (
	"testing"
	"time"
)

// TestStripedThrottle counts in all stripes, and begins anew with each line.
func TestStripedThrottle(t *testing.T) {
	t.Parallel()
	var throttle StripedThrottle
	stripes := uint32(len(throttle.skipped))
	for line, start := range []time.Duration{time.Hour, time.Hour + interval, 2 * time.Hour} {
		want := int64(0)
		if line > 0 {
			want = int64(3 * stripes)
		}
		if skipped, ok := throttle.Due(start, 0); !ok || skipped != want {
			t.Errorf("line %d: %v, %d left out, want %d", line, ok, skipped, want)
		}
		for stripe := range 3 * stripes {
			if _, ok := throttle.Due(start+interval-1, stripe); ok {
				t.Errorf("line %d: a second one within a second", line)
			}
		}
	}
}
