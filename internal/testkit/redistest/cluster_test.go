package redistest

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	begin := time.Now()
	c := StartCluster(t)
	t.Logf("ready after %v", time.Since(begin))
	client := c.Client(t)

	t.Run("every slot", func(t *testing.T) {
		keys := keyPerSlot(t, c)
		for _, op := range []func(redis.Pipeliner, string) redis.Cmder{
			func(p redis.Pipeliner, key string) redis.Cmder { return p.Set(ctx, key, key, 0) },
			func(p redis.Pipeliner, key string) redis.Cmder { return p.Get(ctx, key) },
		} {
			pipe := client.Pipeline()
			for _, key := range keys {
				op(pipe, key)
			}
			cmds, err := pipe.Exec(ctx)
			limittest.OK(t, err)
			for i, cmd := range cmds {
				if get, ok := cmd.(*redis.StringCmd); ok && get.Val() != keys[i] {
					t.Fatalf("slot %d: got %q, want %q", i, get.Val(), keys[i])
				}
			}
		}
	})

	t.Run("move", func(t *testing.T) {
		slot := c.Slot("{move}")
		from := c.Master(slot)
		to := c.Nodes[0]
		if to == from {
			to = c.Nodes[1]
		}
		limittest.OK(t, client.Set(ctx, "{move}old", 1, 0).Err())
		direct := from.Client(t)

		finish := c.StartMove(slot, to)
		if err := direct.Get(ctx, "{move}new").Err(); !redis.HasErrorPrefix(err, "ASK ") {
			t.Errorf("half moved: got %v, want ASK", err)
		}
		if err := client.Set(ctx, "{move}new", 2, 0).Err(); err != nil {
			t.Errorf("half moved: the client does not follow ASK: %v", err)
		}
		finish()
		if err := direct.Get(ctx, "{move}old").Err(); !redis.HasErrorPrefix(err, "MOVED ") {
			t.Errorf("moved: got %v, want MOVED", err)
		}
		if got, err := client.MGet(ctx, "{move}old", "{move}new").Result(); err != nil || got[0] != "1" || got[1] != "2" {
			t.Errorf("moved: got %v, %v", got, err)
		}
		if got := c.Master(slot); got != to {
			t.Errorf("moved: the master is %v, want %v", got, to)
		}
	})

	t.Run("failover", func(t *testing.T) {
		if !effort.More() {
			t.Skip("waits until a replica takes over")
		}
		slot := c.Slot("{fail}")
		limittest.OK(t, client.Set(ctx, "{fail}", "over", 0).Err())
		old := c.Master(slot)
		limittest.OK(t, old.Client(t).Wait(ctx, 1, time.Second).Err())
		begin := time.Now()
		old.Kill()
		c.WaitReady()
		t.Logf("failover after %v", time.Since(begin))
		now := c.Master(slot)
		if now == nil || now == old {
			t.Fatalf("no replica took over from %s", old.Addr)
		}
		if got, err := c.Client(t).Get(ctx, "{fail}").Result(); got != "over" {
			t.Errorf("after the failover: got %q, %v", got, err)
		}
		begin = time.Now()
		old.Restart()
		c.WaitReady()
		t.Logf("six nodes again after %v", time.Since(begin))
		if got := c.Master(slot); got != now {
			t.Errorf("the restarted node is master again")
		}
	})
}

// keyPerSlot returns a key for each of the slots, found by trying numbers.
func keyPerSlot(t *testing.T, c *Cluster) []string {
	t.Helper()
	ctx := context.Background()
	client := c.Nodes[0].Client(t)
	keys := make([]string, clusterSlots)
	missing := clusterSlots
	for next := 0; missing > 0; next += 10000 {
		pipe := client.Pipeline()
		for i := range 10000 {
			pipe.ClusterKeySlot(ctx, strconv.Itoa(next+i))
		}
		cmds, err := pipe.Exec(ctx)
		limittest.OK(t, err)
		for i, cmd := range cmds {
			slot := cmd.(*redis.IntCmd).Val()
			for _, key := range []string{strconv.Itoa(next + i), "a{" + strconv.Itoa(next+i) + "}b}"} {
				if got := c.Slot(key); got != int(slot) {
					t.Fatalf("slot of %q: %d, Redis says %d", key, got, slot)
				}
			}
			if keys[slot] == "" {
				keys[slot] = strconv.Itoa(next + i)
				missing--
			}
		}
	}
	return keys
}
