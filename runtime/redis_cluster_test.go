package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestCluster shares one cluster between tests that leave it as it was.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	client := cluster.Client(t)
	var count commands
	client.OnNewNode(func(node *redis.Client) { node.AddHook(&count) })
	limiter := onRedis(client)
	t.Run("several slots", func(t *testing.T) { testSeveralSlots(t, cluster, limiter) })
	t.Run("block in parts", func(t *testing.T) { testBlockInParts(t, cluster, limiter) })
	t.Run("share kept", func(t *testing.T) { testShareKept(t, cluster) })
	t.Run("hash tag", func(t *testing.T) {
		testHashTag(t, onRedis(client, atOnce), &count)
	})
	t.Run("batch", func(t *testing.T) { testClusterBatch(t, limiter) })
	t.Run("concurrent", func(t *testing.T) { testClusterConcurrent(t, cluster) })
	t.Run("refund once", func(t *testing.T) { testClusterRefundOnce(t, cluster, client, &count) })
	t.Run("half moved", func(t *testing.T) { testHalfMoved(t, cluster) })
	t.Run("reset beside a frozen master", func(t *testing.T) { testResetBesideFrozen(t, cluster) })
}

// TestSharedCluster does so with what has no need to count what is sent.
func TestSharedCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	t.Run("survey", func(t *testing.T) { testSurveyCluster(t, cluster) })
	t.Run("lost replies", func(t *testing.T) {
		for name, fault := range lostReplies {
			t.Run(name, func(t *testing.T) { testLostReplies(t, wayToMaster(t, cluster, lostControl), lostControl, fault) })
		}
	})
	t.Run("memory watch", func(t *testing.T) { testMemoryWatch(t, cluster.Client(t)) })
	t.Run("outage", func(t *testing.T) {
		client := cluster.Client(t)
		// All keys of the test have one tag, and so one master.
		master := cluster.Master(cluster.Slot("{outage}"))
		ok(t, client.Ping(t.Context()).Err())
		outage(t, client, shortOutage, master.Pause, master.Resume)
	})
	cluster.WaitReady()
	t.Run("store", func(t *testing.T) { testStoreOnCluster(t, cluster) })
}

// tripleRule returns three rules whose keys lie on three masters.
func tripleRule(t *testing.T, cluster *redistest.Cluster, prefix string) []*runtime.Rule {
	var rules []*runtime.Rule
	masters := map[*redistest.Server]bool{}
	algorithms := []runtime.Algorithm{runtime.SlidingLog, runtime.FixedWindow, runtime.TokenBucket}
	tags := []string{"", "%window", "%token"} // what their keys end with
	owner := cluster.Owners()
	for i := 0; len(rules) < 3; i++ {
		rule := &runtime.Rule{
			Name: fmt.Sprint(i), Prefix: fmt.Sprintf("%s%d:", prefix, i),
			Window: time.Hour, Max: 10, Algorithm: algorithms[len(rules)],
		}
		master := owner(cluster.Slot(rule.Prefix + "k" + tags[len(rules)]))
		if master == nil {
			t.Fatal("a slot without a master")
		}
		if !masters[master] {
			masters[master] = true
			rules = append(rules, rule)
		}
	}
	return rules
}

// testSeveralSlots charges limits whose keys lie on different masters all or
// none, and never asks for what a cluster cannot do.
func testSeveralSlots(t *testing.T, cluster *redistest.Cluster, limiter *runtime.Limiter) {
	ctx := context.Background()
	rules := tripleRule(t, cluster, "several:")
	limits := []runtime.Limit{rules[0].Limit(key("k")), rules[1].Limit(key("k")).WithCost(2), rules[2].Limit(key("k")).WithCost(3)}
	left := func(want ...int64) {
		t.Helper()
		for i, rule := range rules {
			wantLeft(t, limiter, rule.Limit(key("k")), want[i])
		}
	}
	var last runtime.Decision
	for range 3 {
		d, err := limiter.Take(ctx, limits...)
		if err != nil || d.Rule != rules[2].Name {
			t.Fatalf("got %+v, %v", d, err)
		}
		last = d
	}
	left(7, 4, 1)
	for range 5 {
		d, err := limiter.Take(ctx, limits...)
		if !errors.Is(err, runtime.ErrLimited) || d.Rule != rules[2].Name || d.Remaining != 1 {
			t.Fatalf("got %+v, %v, want the third to deny", d, err)
		}
		left(7, 4, 1) // nothing is charged for a denied call
	}
	refunded(t, limiter, last, limits...)
	left(8, 6, 4)
	// A shadow in another slot is charged too, and denies nobody.
	ghost := *rules[2]
	ghost.Mode = runtime.ModeShadow
	for i := range 3 {
		if _, err := limiter.Take(ctx, rules[0].Limit(key("k")), ghost.Limit(key("k")).WithCost(3)); err != nil {
			t.Fatalf("with a shadow, call %d: %v", i, err)
		}
	}
	left(5, 6, 1)
	for _, rule := range rules {
		ok(t, limiter.Reset(ctx, rule.Limit(key("k"))))
	}
	left(10, 10, 10)
}

// testShareKept denies a call whose charge in another slot cannot be given back: the
// store counts that as a failure, and the decision stands.
func testShareKept(t *testing.T, cluster *redistest.Cluster) {
	var left atomic.Int64 // scripts until one is lost
	client := cluster.Client(t)
	client.OnNewNode(func(node *redis.Client) {
		node.AddHook(hook(func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
			if connects(cmd) || left.Add(-1) != 0 {
				return next(ctx, cmd)
			}
			cmd.SetErr(io.EOF)
			return io.EOF
		}))
	})
	store := runtime.NewRedisStore(client, patient, atOnce)
	limiter := runtime.New(store, quiet, closed)
	rules := tripleRule(t, cluster, "kept:")
	rules[1].Max = 1
	limits := []runtime.Limit{rules[0].Limit(key("k")), rules[1].Limit(key("k"))}
	for i, lost := range []int64{0, 0, 3} { // two take, and the third gives back
		left.Store(lost)
		_, err := limiter.Take(t.Context(), limits...)
		d, _ := limiter.Peek(t.Context(), limits[0])
		failures := store.Failures()[runtime.ClassConnection]
		if (i == 0) != (err == nil) || d.Remaining != []int64{9, 9, 8}[i] || failures != int64(i/2) {
			t.Errorf("call %d: %v, %d left, failures %v", i, err, d.Remaining, store.Failures())
		}
	}
}

// testHashTag uses one trip for keys that a tag in the prefix puts in one slot.
func testHashTag(t *testing.T, limiter *runtime.Limiter, count *commands) {
	var limits []runtime.Limit
	for _, rule := range serverRules(time.Hour, 3) {
		if len(limits) < runtime.MaxLimits {
			rule.Prefix = "{tagged}:" + rule.Prefix
			limits = append(limits, rule.Limit(key("k")))
		}
	}
	count.sent()
	for i := range 5 {
		if _, err := limiter.Take(context.Background(), limits...); (err == nil) != (i < 3) {
			t.Errorf("call %d: %v", i, err)
		}
		want := []string{"evalsha"}
		if i == 0 {
			want = append(want, "eval")
		}
		if diff := cmp.Diff(want, count.sent()); diff != "" {
			t.Errorf("call %d (-want +got):\n%s", i, diff)
		}
	}
}

// testClusterBatch decides a batch over many slots, in order for each key.
func testClusterBatch(t *testing.T, limiter *runtime.Limiter) {
	rule := &runtime.Rule{Name: "batch", Prefix: "batch:", Window: time.Hour, Max: 2, Storage: runtime.StoragePacked}
	var limits []runtime.Limit
	for i := range 300 {
		limits = append(limits, rule.Limit(runtime.NewKey().AddInt(int64(i%100))))
	}
	for i, o := range limiter.TakeEach(context.Background(), limits...) {
		if (o.Err == nil) != (i < 200) || i < 200 && o.Remaining != int64(1-i/100) {
			t.Fatalf("call %d: got %+v", i, o)
		}
	}
}

// testClusterConcurrent admits, of many calls to two limits on two masters at
// the same time, never more than either has, and gives back what it reserved.
func testClusterConcurrent(t *testing.T, cluster *redistest.Cluster) {
	ctx := context.Background()
	limiter := func() *runtime.Limiter {
		return onRedis(cluster.Client(t))
	}
	rules := tripleRule(t, cluster, "concurrent:")
	rules[0].Max, rules[1].Max = 200, 100
	limiters := []*runtime.Limiter{limiter(), limiter()}
	var admitted atomic.Int64
	done := make(chan struct{})
	for i := range 32 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 10 {
				_, err := limiters[i%2].Take(ctx, rules[0].Limit(key("k")), rules[1].Limit(key("k")))
				if err == nil {
					admitted.Add(1)
				} else if !errors.Is(err, runtime.ErrLimited) {
					t.Error(err)
				}
			}
		}()
	}
	for range 32 {
		<-done
	}
	// At most 32 are reserved in the first limit at a time, so that it never
	// denies a call that the second one had room for.
	if n := admitted.Load(); n != 100 {
		t.Errorf("admitted %d, want 100", n)
	}
	// Everything that was reserved and not used has been given back.
	for i, rule := range rules[:2] {
		if d, err := limiters[0].Peek(ctx, rule.Limit(key("k"))); err != nil || d.Remaining != rule.Max-admitted.Load() {
			t.Errorf("limit %d: got %+v, %v, want %d left", i, d, err, rule.Max-admitted.Load())
		}
	}
}

// testClusterRefundOnce refunds charges on three masters, of which one does not
// answer. That refund may have been made all the same, and making it again
// could take back what somebody else was charged.
func testClusterRefundOnce(t *testing.T, cluster *redistest.Cluster, client *redis.ClusterClient, count *commands) {
	ctx := context.Background()
	store := runtime.NewRedisStore(client, runtime.WithTimeout(200*time.Millisecond))
	var charges []rawstore.Charge
	var last *redistest.Server
	tags := []string{"", "%window", "%token"}
	for i, rule := range tripleRule(t, cluster, "refund-once:") {
		key := rule.Prefix + "k" + tags[i]
		charges = append(charges, chargeOf(rule, key, 1))
		last = cluster.Master(cluster.Slot(key))
	}
	calls := []rawstore.Call{{Charges: charges}}
	must(t, store, take, calls)
	count.sent()
	last.Pause()
	err := rawstore.On(store).Settle(ctx, charges)
	last.Resume()
	if err == nil {
		t.Error("a master that does not answer is no error")
	}
	// The client also asks for the topology, since a master does not answer.
	sent := slices.DeleteFunc(count.sent(), func(name string) bool { return !strings.HasPrefix(name, "eval") })
	if len(sent) != 3 {
		t.Errorf("sent %v, want a refund for each of 3 masters", sent)
	}
}
