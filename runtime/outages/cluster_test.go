package outages

import (
	"testing"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

// TestCluster shares one cluster between tests that leave it as it was.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	cluster.KeepMasters() // or a replica decides on a machine so busy that an outage is longer
	t.Run("outage", func(t *testing.T) {
		client := cluster.Client(t)
		// All keys of the test have one tag, and so one master.
		master := cluster.Master(cluster.Slot("{outage}"))
		ok(t, client.Ping(t.Context()).Err())
		outage(t, client, shortOutage, master.Pause, master.Resume)
	})
	cluster.WaitReady()
	t.Run("half moved", func(t *testing.T) { testHalfMoved(t, cluster) })
	if !effort.More() {
		return
	}
	for name, fault := range lostReplies {
		t.Run("replies are lost, "+name, func(t *testing.T) { testLostReplies(t, wayToMaster(t, cluster, lostControl), lostControl, fault) })
	}
	t.Run("reset beside a frozen master", func(t *testing.T) { testResetBesideFrozen(t, cluster) })
}
