package runtime_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A survey tells each key of a rule, as the limiter has written it, and its text is
// that of the key.
func TestSurveyEach(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := runtime.NewRedisStore(redistest.StartCluster(t).Client(t), runtime.WithTimeout(10*time.Second))
	layered := &runtime.Rule{Name: "layered", Window: time.Minute, Max: 5, Algorithm: runtime.SlidingCounter, Buckets: runtime.LayeredBuckets(6, 10), Block: time.Hour}
	limiter := runtime.New(store, runtime.WithNamespace("orders"), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			return runtime.Overrides{Rules: map[string]runtime.Override{
				"layered": {Keys: map[string]runtime.KeyOverride{"k1*": {Window: new(time.Hour)}}},
			}}, nil
		}), time.Hour))
	defer limiter.Close()
	for _, rule := range []*runtime.Rule{layered, {Name: "log", Window: time.Minute, Max: 5}, {Name: "log:", Window: time.Minute, Max: 5}} {
		var want, got []string
		for i := range 20 {
			limit := rule.Limit(runtime.NewKey().AddString(fmt.Sprint("k", i)).AddString("a:b"))
			taken(t, limiter, limit)
			want = append(want, limiter.RedisKey(limit)+" "+fmt.Sprintf("k%d:a%%3Ab", i))
		}
		group := limiter.KeysOf(rule)
		group.Each = func(found runtime.FoundKey) {
			if found.Bytes <= 0 || found.Expiry <= 0 {
				t.Errorf("found %+v", found)
			}
			got = append(got, found.Key+" "+found.Text)
		}
		if err := store.Survey(ctx, group); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rule.Name, diff)
		}
	}
}

// The key that a limit is said to have is that which a call charges.
func TestRedisKey(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(10*time.Second)), runtime.WithNamespace("n"))
	for _, algorithm := range []runtime.Algorithm{runtime.SlidingLog, runtime.SlidingCounter, runtime.TokenBucket} {
		limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 5, Algorithm: algorithm}).Limit(runtime.NewKey().AddString(strings.Repeat("long", 100)))
		taken(t, limiter, limit)
		if key := limiter.RedisKey(limit); client.Exists(context.Background(), key).Val() != 1 {
			t.Errorf("%v: there is no key %q", algorithm, key)
		}
	}
	if key := limiter.RedisKey((&runtime.Rule{}).Limit(nil)); key != "" {
		t.Errorf("a rule without a name has the key %q", key)
	}
}

// A survey finds the keys of a rule under all windows that its keys have.
func TestSurveyOfOverriddenKeys(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := runtime.NewRedisStore(redistest.Start(t).Client(t), runtime.WithTimeout(5*time.Second))
	source := new(board)
	source.set(one(runtime.Override{Keys: keys{"a*": {Window: new(2 * time.Hour)}, "b": {Window: new(3 * time.Hour)}}}), nil)
	limiter := runtime.New(store, quiet, runtime.WithOverrides(source, time.Hour))
	defer limiter.Close()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4, Algorithm: runtime.SlidingCounter, Buckets: runtime.LayeredBuckets(6, 10)}
	other := &runtime.Rule{Name: "r", Prefix: rule.Prefix, Window: time.Hour, Max: 4}
	for _, id := range []string{"a1", "a2", "b", "c"} {
		passing(t, limiter, rule.Limit(key(id)), 1)
		passing(t, limiter, other.Limit(key(id)), 1)
	}
	group := limiter.KeysOf(rule)
	if err := store.Survey(ctx, group); err != nil || group.Keys != 4 || group.Expiry < 6*time.Hour {
		t.Errorf("%d keys that live for %v, %v, want 4 for twice the longest window", group.Keys, group.Expiry, err)
	}
}
