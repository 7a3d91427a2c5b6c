package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rawstore"
)

// countingCluster returns a client of a cluster, and what it sends to any node.
func countingCluster(t *testing.T, cluster *redistest.Cluster) (*redis.ClusterClient, *commands) {
	client, count := cluster.Client(t), new(commands)
	client.OnNewNode(func(node *redis.Client) { node.AddHook(redistest.Hook(count.count)) })
	client.Ping(t.Context()) // so that it knows the slots
	return client, count
}

// testOneTripOnCluster is testOneTrip, with a tag in the prefix that puts all keys in one slot.
func testOneTripOnCluster(t *testing.T, cluster *redistest.Cluster) {
	client, count := countingCluster(t, cluster)
	testOneTrip(t, onRedis(client, atOnce, runtime.OwnScripts), count)
}

// tripleRule returns three rules whose keys for "k" lie on three masters, and those keys.
func tripleRule(t *testing.T, cluster *redistest.Cluster, prefix string, block time.Duration) (rules []*runtime.Rule, keys []string) {
	owner, masters := cluster.Owners(), map[*redistest.Server]bool{nil: true}
	for i := 0; len(rules) < 3; i++ {
		rule := &runtime.Rule{
			Name: fmt.Sprint(i), Prefix: fmt.Sprintf("%s%d:", prefix, i), Window: time.Hour, Max: 10, Block: block,
			Algorithm: []runtime.Algorithm{runtime.SlidingLog, runtime.FixedWindow, runtime.TokenBucket}[len(rules)],
		}
		id := bridge.LimiterOf(inMemory()).RedisKey(rule.Limit(key("k")))
		if master := owner(cluster.Slot(id)); !masters[master] {
			masters[master] = true
			rules, keys = append(rules, rule), append(keys, id)
		}
	}
	return rules, keys
}

// testBlockInParts wants a call whose keys lie on several masters to block where there is no
// room for it, and nowhere else: what is charged and given back blocks nobody.
func testBlockInParts(t *testing.T, cluster *redistest.Cluster) {
	limiter := onRedis(cluster.Client(t))
	rules, _ := tripleRule(t, cluster, "block:", time.Hour)
	limit := func(i int) runtime.Limit { return rules[i].Limit(key("k")) }
	taken(t, limiter, limit(1).WithCost(10))
	all := []runtime.Limit{limit(0), limit(1), limit(2).WithCost(10)}
	for range 3 {
		equal(t, "blocked by", blockedBy(t, limiter, all...).Rule, rules[1].Name)
	}
	for i, blocked := range []bool{false, true, false} {
		d, err := limiter.Peek(t.Context(), limit(i))
		if err != nil || d.Blocked != blocked || !blocked && d.Remaining != 10 {
			t.Errorf("limit %d: got %+v, %v, want it blocked: %v", i, d, err, blocked)
		}
	}
	ok(t, limiter.Reset(t.Context(), limit(1)))
	taken(t, limiter, all...)
}

// testShareKept refuses a call whose charge in another slot cannot be given back: the
// store counts that as a failure, and the decision stands.
func testShareKept(t *testing.T, cluster *redistest.Cluster) {
	var left atomic.Int64 // scripts until one is lost
	client := cluster.Client(t)
	client.OnNewNode(func(node *redis.Client) {
		node.AddHook(redistest.Hook(func(cmds []redis.Cmder, send func() error) error {
			if redistest.Connects(cmds...) || left.Add(-1) != 0 {
				return send()
			}
			return redistest.Failing(cmds, io.EOF)
		}))
	})
	store := runtime.NewRedisStore(client, patient, atOnce)
	limiter := runtime.New(store, quiet, closed)
	rules, _ := tripleRule(t, cluster, "kept:", 0)
	rules[1].Max = 1
	limits := []runtime.Limit{rules[0].Limit(key("k")), rules[1].Limit(key("k"))}
	for i, lost := range []int64{0, 0, 3} { // two take, and the third gives back
		left.Store(lost)
		_, err := limiter.Take(t.Context(), limits...)
		d, _ := limiter.Peek(t.Context(), limits[0])
		failures := bridge.StoreOf(store).Failures()[observe.ClassConnection]
		if (i == 0) != (err == nil) || d.Remaining != []int64{9, 9, 8}[i] || failures != int64(i/2) {
			t.Errorf("call %d: %v, %d left, failures %v", i, err, d.Remaining, bridge.StoreOf(store).Failures())
		}
	}
}

// testClusterConcurrent admits, of many calls to two limits on two masters at
// the same time, never more than either has, and gives back what it reserved.
func testClusterConcurrent(t *testing.T, cluster *redistest.Cluster) {
	rules, _ := tripleRule(t, cluster, "concurrent:", 0)
	rules[0].Max, rules[1].Max = 200, 100
	limits := []runtime.Limit{rules[0].Limit(key("k")), rules[1].Limit(key("k"))}
	limiters := []*runtime.Limiter{onRedis(cluster.Client(t)), onRedis(cluster.Client(t))}
	var admitted atomic.Int64
	concurrently(32, func(i int) {
		for range 10 {
			if _, err := limiters[i%2].Take(t.Context(), limits...); err == nil {
				admitted.Add(1)
			} else if !errors.Is(err, runtime.ErrLimited) {
				t.Error(err)
			}
		}
	})
	// At most 32 are reserved in the first limit at a time, so that it never
	// refuses a call that the second one had room for.
	equal(t, "admitted", admitted.Load(), 100)
	// Everything that was reserved and not used has been given back.
	wantLeft(t, limiters[0], limits[0], 100)
	wantLeft(t, limiters[0], limits[1], 0)
}

// testClusterRefundOnce refunds charges on three masters, of which one does not
// answer. That refund may have been made all the same, and making it again
// could take back what somebody else was charged.
func testClusterRefundOnce(t *testing.T, cluster *redistest.Cluster) {
	client, count := countingCluster(t, cluster)
	store, hasty := runtime.NewRedisStore(client, patient), runtime.NewRedisStore(client, runtime.WithTimeout(200*time.Millisecond))
	rules, keys := tripleRule(t, cluster, "refund-once:", 0)
	calls := make([]rawstore.Call, 1)
	charges := func() []rawstore.Charge { return calls[0].Charges }
	for i, rule := range rules {
		calls[0].Charges = append(charges(), chargeOf(rule, keys[i], 1))
	}
	// Once before, so that the scripts are known.
	must(t, store, take, calls)
	ok(t, rawstore.Wrap(store).Settle(t.Context(), charges()))
	must(t, store, take, calls)
	count.sent()
	last := cluster.Master(cluster.Slot(keys[2]))
	last.Pause()
	err := rawstore.Wrap(hasty).Settle(t.Context(), charges())
	last.Resume()
	if err == nil {
		t.Error("a master that does not answer is no error")
	}
	// The client also asks for the topology, since a master does not answer.
	equal(t, "scripts for refunds on 3 masters", count.scripts(), 3)
}

// testCallsThatLeave has calls on limits in several slots leave at every moment. What stays charged
// is that of calls that were admitted.
func testCallsThatLeave(t *testing.T, cluster *redistest.Cluster) {
	const most = 10_000
	limiter := runtime.New(runtime.NewRedisStore(cluster.Client(t), patient), quiet, closed)
	var all []runtime.Limit
	for i := range 4 {
		rule := perHour(most)
		rule.Name, rule.Prefix = fmt.Sprint("leave", i), fmt.Sprintf("leave%d:", i)
		all = append(all, rule.Limit(nil))
	}
	taken(t, limiter, all...)
	var admitted, left atomic.Int64
	concurrently(32, func(caller int) {
		random := rand.New(rand.NewPCG(uint64(caller), 4))
		for n := 0; n < effort.Choose(25, 200) || left.Load() == 0 && n < most/40; n++ { // until some have, however fast the machine is
			ctx, cancel := context.WithCancel(t.Context())
			timer := time.AfterFunc(time.Duration(random.Int64N(int64(500*time.Microsecond))), cancel)
			_, err := limiter.Take(ctx, all...)
			if err == nil {
				admitted.Add(1)
			} else if errors.Is(err, context.Canceled) {
				left.Add(1)
			} else {
				t.Error(err)
			}
			timer.Stop()
			cancel()
		}
	})
	if left.Load() == 0 {
		t.Error("nobody has left")
	}
	for _, limit := range all {
		eventually(t, fmt.Sprintf("%d are left of %s after %d have left", most-1-admitted.Load(), limit.Rule.Name, left.Load()), func() bool {
			d, _ := limiter.Peek(t.Context(), limit)
			return d.Remaining == most-1-admitted.Load()
		})
	}
	ok(t, limiter.Close())
}

// testReservedShare has one process find no room, since another has reserved it as a part
// of a call, and gives it back. It finds the room within a tenth of a second.
func testReservedShare(t *testing.T, cluster *redistest.Cluster) {
	one, other := runtime.NewRedisStore(cluster.Client(t), patient), runtime.NewRedisStore(cluster.Client(t), patient)
	rule := perHour(1)
	least := time.Hour // of several, since a busy machine adds to it
	for id := range 10 {
		call := func(store runtime.Store) rawstore.Charge {
			return must(t, store, take, single(rule, fmt.Sprint("share:", id), 1))
		}
		reserved := call(one)
		if call(other).Allowed {
			t.Fatal("there was room")
		}
		ok(t, rawstore.Wrap(one).Settle(t.Context(), []rawstore.Charge{reserved})) // at 0: given back
		given := time.Now()
		eventually(t, "there is room", func() bool { return call(other).Allowed })
		least = min(least, time.Since(given))
	}
	between(t, "refused although the limit was whole for", least, 0, 100*time.Millisecond)
}

// TestRing shares trips to each server of a ring, charges limits on two of them all or none,
// and every key on the server that the ring has it on, whatever else a call or a batch is
// charged for.
func TestRing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	addrs := map[string]string{}
	for i := range 3 {
		addrs[fmt.Sprint(i)] = redistest.Start(t).Addr
	}
	client := redis.NewRing(&redis.RingOptions{Addrs: addrs})
	t.Cleanup(func() { _ = client.Close() })
	limiter := onRedis(client)
	rule := &runtime.Rule{Name: "ring", Prefix: "ring:", Window: time.Hour, Max: 20, Storage: runtime.StoragePacked}
	other := &runtime.Rule{Name: "other", Prefix: "other:", Window: time.Hour, Max: 5, Algorithm: runtime.FixedWindow}
	const keys = 30
	var admitted [keys]atomic.Int64
	var batch []runtime.Limit
	for i := range int64(keys) {
		id := runtime.NewKey().AddInt(i)
		for n := range 8 {
			if _, err := limiter.Take(ctx, rule.Limit(id), other.Limit(id)); (err == nil) != (n < 5) {
				t.Errorf("both limits of %d, call %d: %v", i, n, err)
			}
		}
		wantLeft(t, limiter, rule.Limit(id), 15)
		batch = append(batch, rule.Limit(id))
	}
	for i := range batch { // each way of cutting it may begin with another server
		for j, o := range limiter.TakeEach(ctx, batch[i:min(i+2, keys)]...) {
			admitted[i+j].Add(1)
			if o.Err != nil {
				t.Error(o.Err)
			}
		}
	}
	concurrently(32, func(int) {
		for i := range admitted {
			if _, err := limiter.Take(ctx, batch[i]); err == nil {
				admitted[i].Add(1)
			}
		}
	})
	for i := range admitted {
		equal(t, fmt.Sprint("admitted on key ", i), admitted[i].Load(), 15)
	}
	placed := int64(0)
	ok(t, client.ForEachShard(ctx, func(ctx context.Context, server *redis.Client) error {
		n, err := server.DBSize(ctx).Result()
		atomic.AddInt64(&placed, n)
		return err
	}))
	equal(t, "keys on all servers", placed, 2*keys)
}
