package wiretest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime/rediswire"
)

// clusterMoves: a client finds the servers of keys, says where a server sends it, and
// finds who takes over.
func clusterMoves(t *testing.T, connect Connect) {
	servers := redistest.StartCluster(t)
	client, is := open(t, connect, servers.Addrs()...).(rediswire.Cluster)
	if !is || !client.Slots() {
		t.Fatal("it is no client of a cluster")
	}
	ctx := within(t, patience)
	masters, err := client.Masters(ctx)
	if err != nil || len(masters) != 3 {
		t.Fatalf("%d masters, %v", len(masters), err)
	}
	for i := range 50 {
		key := fmt.Sprint("k:", i)
		found, err := client.Find(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if address := servers.Master(servers.Slot(key)).Addr; found.About().Address != address || !slices.Contains(masters, found) {
			t.Fatalf("%s is on %s, want %s", key, found.About().Address, address)
		}
		executed(t, found, count(key), count(key))
		through := count(key)
		executed(t, client, through)
		if through.Numbers[0] != 3 {
			t.Fatalf("%s was counted to %v", key, through.Numbers)
		}
		for _, other := range masters {
			if other == found {
				continue
			}
			sent := count(key)
			other.Execute(ctx, []*rediswire.Script{sent})
			if !rediswire.Replied(sent.Err, "MOVED") {
				t.Fatalf("a server that has not the key says %v", sent.Err)
			}
		}
	}
	importing(t, servers, client)
	if effort.More() {
		takeover(t, servers, client)
	}
}

// importing: a server that is about to have a slot answers who asks.
func importing(t *testing.T, servers *redistest.Cluster, client rediswire.Cluster) {
	const key = "moves"
	from := servers.Master(servers.Slot(key))
	to := servers.Nodes[slices.IndexFunc(servers.Nodes[:3], func(s *redistest.Server) bool { return s != from })]
	defer servers.StartMove(servers.Slot(key), to)()
	ctx := within(t, patience)
	has, err := client.Find(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	sent := count(key)
	has.Execute(ctx, []*rediswire.Script{sent})
	if !rediswire.Replied(sent.Err, "ASK") {
		t.Fatalf("a server that has not the key any more says %v", sent.Err)
	}
	masters, err := client.Masters(ctx)
	i := slices.IndexFunc(masters, func(s rediswire.Server) bool { return s.About().Address == to.Addr })
	if err != nil || i < 0 {
		t.Fatal(masters, err)
	}
	asking, other := count(key), count(key)
	asking.Asking, other.Asking = true, true
	executed(t, masters[i], asking, other)
	if other.Numbers[0] != 2 {
		t.Errorf("got %v", other.Numbers)
	}
	through := count(key)
	executed(t, client, through)
	if through.Numbers[0] != 3 {
		t.Errorf("got %v", through.Numbers)
	}
}

// takeover: when a master is lost the client comes to know who has its keys.
func takeover(t *testing.T, servers *redistest.Cluster, client rediswire.Cluster) {
	lost := servers.Nodes[0]
	key := ""
	for i := 0; key == "" || servers.Master(servers.Slot(key)) != lost; i++ {
		key = fmt.Sprint("t:", i)
	}
	lost.Kill()
	eventually(t, func() error {
		client.Reload()
		found, err := client.Find(within(t, time.Second), key)
		if err != nil {
			return err
		}
		s := count(key)
		found.Execute(within(t, time.Second), []*rediswire.Script{s})
		if s.Err != nil {
			return s.Err
		}
		if found.About().Address == lost.Addr {
			return errors.New("a server that is gone has answered")
		}
		return nil
	})
}
