// Package outages has stores decide while their servers are away, die, move and lose what they
// have, and wants what the documentation promises for that. It holds tests only.
package outages

import (
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
)

var (
	quiet, closed, atOnce, patient = limittest.Quiet, limittest.Closed, limittest.AtOnce, limittest.Patient
	key, taken, settled, left      = limittest.Key, limittest.Taken, limittest.Settled, limittest.Left
	ok, eventually, elapsed        = limittest.OK, limittest.Eventually, limittest.Elapsed
	wantLeft, concurrently         = limittest.WantLeft, limittest.Concurrently
	observing, metered, executions = limittest.Observing, limittest.Metered, limittest.Executions
	onRedis                        = limittest.OnRedis
)

type lines = limittest.Lines

func TestMain(m *testing.M) { limittest.Main(m) }

// throughout looks again and again for a while. Redis goes by its own clock, and nothing says that nothing comes.
func throughout(lasts time.Duration, look func()) {
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		look()
	}
}

// fullOnly leaves a test to a full run. A quick one has TestCrash, TestCluster and some of
// the faults.
func fullOnly(t *testing.T) {
	t.Helper()
	if !effort.Full() {
		t.Skip("in a full run only")
	}
}
