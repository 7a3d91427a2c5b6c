package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// TestSurvey counts the keys of rules whose prefixes hold characters that mean
// something in a pattern, and heals those that somebody made endless.
func TestSurvey(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	count := counting(client)
	store := runtime.NewRedisStore(client, patient)
	limiter := runtime.New(store, quiet, closed, runtime.WithNamespace("a[b]*"))
	logs := &runtime.Rule{Name: "logs", Prefix: `c?\d:`, Window: time.Hour, Max: 100}
	counters := &runtime.Rule{Name: "counters", Prefix: `c?\d:`, Window: time.Hour, Max: 100, Algorithm: runtime.SlidingCounter}
	deeper := &runtime.Rule{Name: "deeper", Prefix: `c?\d:e:`, Window: time.Minute, Max: 10, Burst: 600, Algorithm: runtime.TokenBucket}
	const keys = 1000
	for i := range keys {
		limits := []runtime.Limit{logs.Limit(key(fmt.Sprint(i)))}
		if i < 10 {
			limits = append(limits, counters.Limit(key(fmt.Sprint(i))), deeper.Limit(key(fmt.Sprint(i))).WithCost(600)) // for an hour
		}
		taken(t, limiter, limits...)
	}
	for i := range 7 {
		client.Persist(ctx, fmt.Sprintf(`a[b]*:c?\d:%d`, i))
	}
	client.Persist(ctx, `a[b]*:c?\d:e:3%token`)
	// What the pattern would match if it were not taken literally.
	for _, foreign := range []string{`ab:c?\d:1`, `a[b]x:c?\d:1`, `a[b]*:cxd:1`, `a[b]*:c?d:1`, "other"} {
		client.Set(ctx, foreign, "mine", 0)
	}

	ignore := cmpopts.IgnoreFields(bridge.KeyGroup{}, "Bytes", "Expiry", "Tag")
	for _, step := range []struct {
		heal            bool
		healed, endless int64
	}{{false, 0, 1}, {true, 1, 1}, {true, 0, 0}} {
		var groups []*bridge.KeyGroup
		for _, rule := range []*runtime.Rule{logs, counters, deeper} {
			g := bridge.LimiterOf(limiter).KeysOf(rule)
			groups = append(groups, g)
			if !step.heal {
				g.Expiry = 0
			}
		}
		count.sent()
		ok(t, bridge.StoreOf(store).Survey(ctx, groups...))
		same(t, fmt.Sprintf("heal %v", step.heal), []*bridge.KeyGroup{
			{Prefix: `a[b]*:c?\d:`, Keys: keys, Endless: 7 * step.endless, Healed: 7 * step.healed},
			{Prefix: `a[b]*:c?\d:`, Keys: 10},
			{Prefix: `a[b]*:c?\d:e:`, Keys: 10, Endless: step.endless, Healed: step.healed},
		}, groups, ignore)
		for _, g := range groups {
			if g.Bytes < 50*g.Keys {
				t.Errorf("%s: %d bytes for %d keys", g.Prefix, g.Bytes, g.Keys)
			}
		}
		if slices.ContainsFunc(count.sent(), func(name string) bool { return strings.HasPrefix(name, "keys") }) {
			t.Error("KEYS was sent")
		}
	}
	// The window of a log is an hour, and the bucket takes one to be full.
	for _, healed := range []string{`a[b]*:c?\d:3`, `a[b]*:c?\d:e:3%token`} {
		between(t, healed+" lives on for", client.PTTL(ctx, healed).Val(), time.Hour, 3*time.Hour+time.Minute)
	}
	equal(t, "a foreign key lives on for", client.PTTL(ctx, "other").Val(), -1)
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := bridge.StoreOf(store).Survey(over, bridge.LimiterOf(limiter).KeysOf(logs)); err == nil {
		t.Error("a survey goes on after its context")
	}
}

// testMemoryWatch fills Redis and frees it, and wants to be told of both once
// and of every reading, until the store is closed.
func testMemoryWatch(t *testing.T, client redis.UniversalClient, _ []*redistest.Server) {
	var out lines
	readings := make(chan observe.MemoryEvent)
	store := runtime.NewRedisStore(client, runtime.WithMemoryWatch(0.5, time.Millisecond))
	runtime.New(store, out.Logger(), observing(observe.Observer{
		Memory: func(e observe.MemoryEvent) { readings <- e },
	}))
	reading := func(high bool) observe.MemoryEvent {
		t.Helper()
		for range 1000 {
			if e := <-readings; e.High == high {
				return e
			}
		}
		t.Fatalf("no reading says high %v", high)
		panic("")
	}
	limit := func(bytes string) {
		onEach(t, client, func(ctx context.Context, c *redis.Client) error { return c.ConfigSet(ctx, "maxmemory", bytes).Err() })
	}
	if e := reading(false); e.Max < 10*e.Used || e.Used < 100_000 { // that of the machine
		t.Errorf("no maxmemory: got %+v", e)
	}
	defer limit("0")
	limit("1500000")
	if e := reading(true); e.Max != 1_500_000 || e.Used < e.Max/2 {
		t.Errorf("short of memory: got %+v", e)
	}
	limit("100000000")
	if e := reading(false); e.Max != 100_000_000 {
		t.Errorf("memory again: got %+v", e)
	}
	go func() {
		for range readings {
		}
	}()
	for range 2 {
		ok(t, store.Close())
	}
	close(readings) // a reading after that would panic
	text := out.String()
	if strings.Count(text, "short of memory") != 1 || strings.Count(text, "has memory again") != 1 {
		t.Errorf("the log says\n%s", text)
	}
}

// TestMemoryWatchEnds closes stores whose Redis does not answer, was never
// asked, or is watched for no limiter.
func TestMemoryWatchEnds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	watch := runtime.WithMemoryWatch(0, 0)
	server.Pause()
	store, idle, none := runtime.NewRedisStore(client, watch), runtime.NewRedisStore(client, watch), runtime.NewRedisStore(client)
	runtime.New(store, quiet)
	// The client alone would try four times, for three seconds each.
	between(t, "closing took", elapsed(func() { ok(t, errors.Join(store.Close(), idle.Close(), none.Close())) }), 0, 10*time.Second)
	runtime.New(idle, quiet) // starts nothing any more, or goroutines are left
	server.Resume()
}

// TestKeysOf wants the expiry that a survey gives to be longer than what the rule counts.
func TestKeysOf(t *testing.T) {
	for _, test := range []struct {
		rule  runtime.Rule
		least time.Duration
	}{
		{runtime.Rule{Window: time.Hour, Max: 1}, time.Hour},
		{runtime.Rule{Window: time.Hour, Max: 0}, time.Hour},
		{runtime.Rule{Window: time.Hour, Max: 10, Algorithm: runtime.SlidingCounter}, time.Hour + time.Minute},
		{runtime.Rule{Window: time.Minute, Max: 10, Burst: 6000, Algorithm: runtime.TokenBucket}, 10 * time.Hour},
		{runtime.Rule{Window: rule.MaxWindow, Max: 1, Burst: 1_000_000_000_000, Algorithm: runtime.TokenBucket}, 100 * 365 * 24 * time.Hour},
	} {
		if g := bridge.LimiterOf(runtime.New(nil, quiet)).KeysOf(&test.rule); g.Expiry < test.least || g.Prefix != test.rule.Prefix {
			t.Errorf("%+v: got %+v, want at least %v", test.rule, g, test.least)
		}
	}
	equal(t, "key of a rule without a name", bridge.LimiterOf(inMemory()).RedisKey((&runtime.Rule{}).Limit(nil)), "")
}

// TestSurveyWithoutPrefix heals nothing for a group that stands for every key of the database.
func TestSurveyWithoutPrefix(t *testing.T) {
	client := ownRedis(t)
	client.Set(t.Context(), "mine", 1, 0)
	store := runtime.NewRedisStore(client, patient)
	everything := bridge.LimiterOf(runtime.New(store, quiet)).KeysOf(&runtime.Rule{Window: time.Hour, Max: 1})
	if err := bridge.StoreOf(store).Survey(t.Context(), everything); err == nil || client.TTL(t.Context(), "mine").Val() != -1 {
		t.Errorf("got %v; the key lives for %v", err, client.TTL(t.Context(), "mine").Val())
	}
	everything.Expiry = 0
	if err := bridge.StoreOf(store).Survey(t.Context(), everything); err != nil || everything.Keys != 1 || everything.Endless != 1 {
		t.Errorf("got %+v, %v", everything, err)
	}
}

// TestSurveyOfMovingKeys goes on when keys move to another server of a cluster
// between being listed and being looked at, or healed.
func TestSurveyOfMovingKeys(t *testing.T) {
	client := ownRedis(t)
	for i := range 5 {
		client.Set(t.Context(), fmt.Sprint("k:", i), 1, 0)
	}
	moved := redistest.Reply("MOVED 1 127.0.0.1:1")
	replies := map[string]error{
		"pttl[k:0]": moved, "memory[usage k:1]": redistest.Reply("ASK 1 127.0.0.1:1"), fmt.Sprint("pexpire[k:2 ", 3600*1000, "]"): moved,
	}
	client.AddHook(redistest.Hook(func(cmds []redis.Cmder, send func() error) error {
		err := send()
		for _, cmd := range cmds {
			if reply := replies[fmt.Sprint(cmd.Name(), cmd.Args()[1:])]; reply != nil {
				cmd.SetErr(reply)
				err = reply
			}
		}
		return err
	}))
	g := &bridge.KeyGroup{Prefix: "k:", Expiry: time.Hour}
	err := bridge.StoreOf(runtime.NewRedisStore(client, patient)).Survey(t.Context(), g)
	if err != nil || g.Keys != 3 || g.Endless != 3 || g.Healed != 2 {
		t.Errorf("got %+v, %v", g, err)
	}
}

// testSurveyEach wants a survey to tell each key of a rule, as the limiter has written it,
// and its text to be that of the key.
func testSurveyEach(t *testing.T, cluster *redistest.Cluster) {
	client := cluster.Client(t)
	store := runtime.NewRedisStore(client, patient)
	layered := &runtime.Rule{Name: "r", Window: time.Minute, Max: 5, Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10), Block: time.Hour}
	limiter := runtime.New(store, runtime.WithNamespace("orders"), quiet, overridden(overridesOf(rule.Override{Keys: keys{"k1*": {Window: new(time.Hour)}}})))
	defer limiter.Close()
	for _, r := range []*runtime.Rule{layered, {Name: "log", Window: time.Minute, Max: 5}, {Name: "log:", Window: time.Minute, Max: 5}} {
		var want, got []string
		for i := range 20 {
			limit := r.Limit(runtime.NewKey().AddString(fmt.Sprint("k", i)).AddString("a:b"))
			taken(t, limiter, limit)
			want = append(want, bridge.LimiterOf(limiter).RedisKey(limit)+" "+fmt.Sprintf("k%d:a%%3Ab", i))
			if i%10 == 0 {
				client.Persist(t.Context(), bridge.LimiterOf(limiter).RedisKey(limit))
			}
		}
		group := bridge.LimiterOf(limiter).KeysOf(r)
		group.Each = func(found bridge.FoundKey) {
			if endless := strings.HasPrefix(found.Text, "k0:") || strings.HasPrefix(found.Text, "k10:"); found.Bytes <= 0 || found.Expiry <= 0 && !endless {
				t.Errorf("found %+v", found)
			}
			got = append(got, found.Key+" "+found.Text)
		}
		ok(t, bridge.StoreOf(store).Survey(t.Context(), group))
		if group.Keys != 20 || group.Endless != 2 || group.Healed != 2 {
			t.Errorf("%s: got %+v, want 20 keys and 2 healed", r.Name, group)
		}
		slices.Sort(want)
		slices.Sort(got)
		same(t, r.Name, want, got)
	}
}
