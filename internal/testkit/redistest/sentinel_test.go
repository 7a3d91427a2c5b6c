package redistest

import (
	"context"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
)

func TestSentinel(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	begin := time.Now()
	s := StartSentinel(t)
	t.Logf("ready after %v", time.Since(begin))
	client := s.Client(t)

	if err := client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	old := s.WaitMaster()
	if old != s.Nodes[0] {
		t.Fatalf("the master is %v, want %s", old, s.Nodes[0].Addr)
	}
	if n, err := old.Client(t).Wait(ctx, 2, time.Second).Result(); n != 2 {
		t.Fatalf("the replicas did not copy: %d, %v", n, err)
	}

	if !effort.More() {
		return // it would be three seconds until a replica takes over
	}
	begin = time.Now()
	old.Kill()
	now := s.WaitMaster()
	t.Logf("failover after %v", time.Since(begin))
	if now == old {
		t.Fatalf("no replica took over from %s", old.Addr)
	}
	if got, err := s.Client(t).Get(ctx, "k").Result(); got != "v" {
		t.Errorf("after the failover: got %q, %v", got, err)
	}

	if !effort.Full() {
		return // it would be ten seconds until the sentinels demote a restarted master
	}
	begin = time.Now()
	old.Restart()
	s.WaitReady()
	t.Logf("three servers again after %v", time.Since(begin))
	if got := s.WaitMaster(); got != now {
		t.Errorf("the restarted server is master again")
	}
	if got, err := client.Get(ctx, "k").Result(); got != "v" {
		t.Errorf("the first client: got %q, %v", got, err)
	}
}
