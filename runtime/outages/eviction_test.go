package outages

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// TestBudgetAtRisk wants one warning where a limit of a day or longer is counted in a Redis
// that may lose it, or one of a minute or longer in one that may drop it, with the first such
// rule, and none elsewhere.
func TestBudgetAtRisk(t *testing.T) {
	t.Parallel()
	evicting := []string{"--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"}
	saving := []string{"--appendonly", "yes"}
	both := append(append([]string(nil), evicting...), saving...)
	day := &runtime.Rule{Name: "day", Window: 24 * time.Hour, Max: 5}
	shorter := &runtime.Rule{Name: "shorter", Window: 24*time.Hour - 1, Max: 5}
	for i, c := range []struct {
		args  []string
		rules []*runtime.Rule
		want  string // or empty: no warning
	}{
		{nil, []*runtime.Rule{shorter, month, day}, "rule=month evicts=no append_only_file=false"},
		{evicting, []*runtime.Rule{day, month}, "rule=day evicts=volatile-lru append_only_file=false"},
		{both, []*runtime.Rule{month}, "rule=month evicts=volatile-lru append_only_file=true"},
		{saving, []*runtime.Rule{month, day}, ""},
		{append(saving, "--maxmemory-policy", "allkeys-lru"), []*runtime.Rule{month}, ""}, // without a maxmemory
		{evicting, []*runtime.Rule{shorter}, "rule=shorter evicts=volatile-lru append_only_file=false"},
		{evicting, []*runtime.Rule{{Name: "quick", Window: time.Minute - 1, Max: 5}}, ""},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			client := redistest.Start(t, c.args...).Client(t)
			for _, registered := range []bool{true, false} {
				wantRisk(t, client, registered, c.rules, c.want)
			}
		})
	}
	t.Run("cluster", func(t *testing.T) {
		if !effort.More() {
			t.Skip("waits for a cluster")
		}
		t.Parallel()
		cluster := redistest.StartCluster(t)
		cluster.Configure(t, "maxmemory", "100mb")
		cluster.Configure(t, "maxmemory-policy", "allkeys-lfu")
		wantRisk(t, cluster.Client(t), true, []*runtime.Rule{month}, "rule=month evicts=allkeys-lfu append_only_file=false")
	})
}

// wantRisk has rules become known to a limiter, by registration or by a call, and wants one
// warning or none.
func wantRisk(t *testing.T, client redis.UniversalClient, registered bool, rules []*runtime.Rule, want string) {
	t.Helper()
	var out lines
	store := runtime.NewRedisStore(client, patient)
	limiter := runtime.New(store, out.Logger(), closed)
	for range 2 {
		if registered {
			limiter.Register(rules...)
			continue
		}
		for _, rule := range rules {
			taken(t, limiter, rule.Limit(key(t.Name())))
		}
	}
	ok(t, store.Close()) // when the look has ended
	text := out.String()
	if n := strings.Count(text, "code=budget_at_risk"); want == "" && n > 0 || want != "" && (n != 1 || !strings.Contains(text, want)) {
		t.Errorf("registered %v: the log says %q, want %q", registered, text, want)
	}
}

// TestBudgetsWithoutRights wants no line, and no further question, where the user may not ask.
func TestBudgetsWithoutRights(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	ok(t, client.Do(t.Context(), "ACL", "SETUSER", "default", "-info").Err())
	wantRisk(t, client, true, []*runtime.Rule{month}, "")
	refused, err := client.Do(t.Context(), "ACL", "LOG").Slice()
	ok(t, err)
	if len(refused) != 1 {
		t.Errorf("%d entries in the log of refusals, want 1", len(refused))
	}
}

// TestEviction fills a Redis that evicts keys with an expiry. Budgets are among them: their
// callers have all of it again. The memory watch tells of it, once in the log and with every
// reading in an event.
func TestEviction(t *testing.T) {
	t.Parallel()
	const callers = 300
	client := redistest.Start(t, "--maxmemory-policy", "volatile-random").Client(t)
	var out lines
	readings := make(chan observe.MemoryEvent, 10_000)
	store := runtime.NewRedisStore(client, patient, runtime.WithMemoryWatch(0.99, 10*time.Millisecond))
	limiter := runtime.New(store, out.Logger(), closed, observing(observe.Observer{Memory: func(e observe.MemoryEvent) { readings <- e }}))
	evicted := func() (n int64) {
		for len(readings) > 0 {
			n += (<-readings).Evicted
		}
		return n
	}
	r := &runtime.Rule{Name: "budget", Algorithm: runtime.FixedWindow, Period: rule.Year, Max: 10}
	for i := range callers {
		taken(t, limiter, r.Limit(key(fmt.Sprint(i))).WithCost(10))
	}
	if n := evicted(); n != 0 {
		t.Fatalf("%d keys evicted before", n)
	}
	ok(t, client.ConfigSet(t.Context(), "maxmemory", "2mb").Err())
	for i := range 100 { // without an expiry: they stay
		client.Set(t.Context(), fmt.Sprint("other:", i), strings.Repeat("x", 10_000), 0)
	}
	whole := int64(0)
	for i := range callers {
		if left(t, limiter, r.Limit(key(fmt.Sprint(i)))) == 10 {
			whole++
		}
	}
	gone, err := client.Info(t.Context(), "stats").Result()
	ok(t, err)
	_, gone, _ = strings.Cut(gone, "evicted_keys:")
	gone, _, _ = strings.Cut(gone, "\r")
	told := int64(0)
	eventually(t, "events tell of all that is evicted", func() bool {
		told += evicted()
		return fmt.Sprint(told) == gone
	})
	ok(t, store.Close())
	t.Logf("%s keys evicted, %d of %d callers have their whole budgets again", gone, whole, callers)
	if whole == 0 || whole > told {
		t.Errorf("%s keys were evicted, and %d callers have their whole budgets again", gone, whole)
	}
	if text := out.String(); !strings.Contains(text, "code=evicted") || !strings.Contains(text, "keys=") {
		t.Errorf("the log says %q", text)
	}
}
