package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// shadowCase is two limits of a call, of which one is in shadow mode and fails.
type shadowCase struct {
	enforced, shadow *runtime.Rule
	first            bool // the shadow limit is
}

// shadowCases returns every algorithm in the shadow of an enforced one that admits two calls
// an hour.
func shadowCases(enforcedPrefix, shadowPrefix string) (cases []shadowCase) {
	enforced := []runtime.Algorithm{runtime.SlidingLog, runtime.FixedWindow, runtime.TokenBucket, runtime.Concurrency}
	for i, shadow := range shadowRules() {
		for j, policy := range []runtime.FailurePolicy{runtime.FailOpen, runtime.FailClosed, runtime.FailLocal} {
			n := len(cases)
			shadow.Prefix, shadow.Fail = fmt.Sprint(shadowPrefix, n, ":"), policy
			cases = append(cases, shadowCase{&runtime.Rule{
				Name: "enforced", Prefix: fmt.Sprint(enforcedPrefix, n, ":"), Fail: policy,
				Window: time.Hour, Max: 2, Algorithm: enforced[(i+j)%4],
			}, new(shadow), n%2 == 0})
		}
	}
	return cases
}

func (c *shadowCase) limits(id string) []runtime.Limit {
	limits := []runtime.Limit{c.enforced.Limit(key(id)), c.shadow.Limit(key(id))}
	if c.first {
		slices.Reverse(limits)
	}
	return limits
}

// check has a limiter decide three calls, of which the enforced limit admits two, and
// returns how long these took, and how long any did.
func (c *shadowCase) check(t *testing.T, limiter *runtime.Limiter, id string) (admitted []time.Duration, longest time.Duration) {
	t.Helper()
	for i := range 3 {
		start := time.Now()
		d, err := limiter.Take(context.Background(), c.limits(id)...)
		took := time.Since(start)
		longest = max(longest, took)
		if i < 2 {
			admitted = append(admitted, took)
		}
		decided := d.Source == rule.SourceStore || d.Source == rule.SourceRecalled
		if d.Allowed != (i < 2) || errors.Is(err, runtime.ErrLimited) != (i == 2) || d.Rule != "enforced" || !decided || d.Remaining != max(0, int64(1-i)) {
			t.Errorf("%v beside %v in the shadow, %v, call %d: got %+v, %v", c.enforced.Algorithm, c.shadow.Algorithm, c.enforced.Fail, i, d, err)
		}
	}
	if d, err := limiter.Peek(context.Background(), c.limits(id)...); err != nil || d.Allowed || d.Rule != "enforced" {
		t.Errorf("%v beside %v: peek: got %+v, %v", c.enforced.Algorithm, c.shadow.Algorithm, d, err)
	}
	return admitted, longest
}

// TestShadowKeyFails has calls with a shadow limit whose key another program uses, or whose keys
// the user may not touch. They are decided, by no more scripts than others, and the failure is
// reported.
func TestShadowKeyFails(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]*redis.Client{"theirs": redistest.Start(t).Client(t), "forbidden": redistest.Start(t).ClientAs(t, "~free:*", "+@all")} {
		count := counting(client)
		var failures atomic.Int64
		cases := shadowCases("free:", name+":")
		for i, c := range cases {
			limiter := runtime.New(runtime.NewRedisStore(client, patient, atOnce), quiet, observing(observe.Observer{
				Failure: func(_ context.Context, ev observe.FailureEvent) {
					if ev.Rule == c.shadow.Name {
						failures.Add(1)
					}
				},
			}))
			if name == "theirs" {
				ok(t, client.XAdd(t.Context(), &redis.XAddArgs{Stream: bridge.LimiterOf(limiter).RedisKey(c.shadow.Limit(key("k"))), Values: []string{"a", "b"}}).Err())
			}
			c.check(t, limiter, "k")
			count.sent()
			for n := range 10 {
				taken(t, limiter, c.limits(fmt.Sprint(n))...)
			}
			if trips := len(count.sent()); trips > 15 { // a rest may end meanwhile
				t.Errorf("%s, case %d: %d scripts for 10 calls", name, i, trips)
			}
		}
		if failures.Load() < int64(len(cases)) {
			t.Errorf("%s: %d failures were reported, of %d limits", name, failures.Load(), len(cases))
		}
	}
}

// TestLostMasters has masters of a cluster freeze, and one die.
func TestLostMasters(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	cluster.KeepMasters()
	t.Run("refusals of each", func(t *testing.T) {
		masters := []*redistest.Server{cluster.Master(0), cluster.Master(6000), cluster.Master(12000)}
		testRefusalsOfEach(t, cluster.Client(t), 20, func() {
			for _, master := range masters {
				master.Pause()
			}
		})
		for _, master := range masters {
			master.Resume()
		}
	})
	t.Run("shadow of a frozen one", func(t *testing.T) { testShadowSlots(t, cluster, (*redistest.Server).Pause) })
	t.Run("shadow of a dead one", func(t *testing.T) { testShadowSlots(t, cluster, (*redistest.Server).Kill) })
}

// testShadowSlots has the master of a shadow limit's slot fail, and wants calls to be decided as
// before, and no more than a little later.
func testShadowSlots(t *testing.T, cluster *redistest.Cluster, fail func(*redistest.Server)) {
	cluster.WaitReady()
	owner := cluster.Owners()
	lost := owner(0)
	const timeout = 3 * time.Second
	cases := shadowCases(t.Name()+"e", t.Name()+"s")
	limiter := runtime.New(runtime.NewRedisStore(cluster.Client(t), runtime.WithTimeout(timeout), atOnce), quiet)
	defer func() { _ = limiter.Close() }()
	ids := make([]string, len(cases))
	onLost := func(limit runtime.Limit) bool {
		return owner(cluster.Slot(bridge.LimiterOf(limiter).RedisKey(limit))) == lost
	}
	for i := range cases {
		for n := 0; ids[i] == ""; n++ {
			id := fmt.Sprint("k", n)
			if onLost(cases[i].shadow.Limit(key(id))) && !onLost(cases[i].enforced.Limit(key(id))) {
				ids[i] = id
			}
		}
		taken(t, limiter, cases[i].limits("warm"+ids[i])...)
	}
	fail(lost)
	defer lost.Resume() // which a dead one does not heed
	var all []time.Duration
	for i := range cases {
		admitted, longest := cases[i].check(t, limiter, ids[i])
		all = append(all, admitted...)
		if longest > timeout/2 {
			t.Errorf("case %d: a call took %v", i, longest)
		}
	}
	slices.Sort(all)
	// A busy machine may delay more than half of them by tens of milliseconds.
	if quarter := all[len(all)/4]; quarter > timeout/20 {
		t.Errorf("three quarters of the calls took %v and more", quarter)
	}
}
