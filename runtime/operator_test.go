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
			if _, err := limiter.Take(ctx, limit); err != nil {
				t.Fatal(err)
			}
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
		if _, err := limiter.Take(context.Background(), limit); err != nil {
			t.Fatal(err)
		}
		if key := limiter.RedisKey(limit); client.Exists(context.Background(), key).Val() != 1 {
			t.Errorf("%v: there is no key %q", algorithm, key)
		}
	}
	if key := limiter.RedisKey((&runtime.Rule{}).Limit(nil)); key != "" {
		t.Errorf("a rule without a name has the key %q", key)
	}
}

// Overrides that a limiter would reject are found before they are written.
func TestOverridesCheck(t *testing.T) {
	t.Parallel()
	rule := &runtime.Rule{Name: "r", Window: time.Minute, Max: 5}
	of := func(o runtime.Override) runtime.Overrides {
		return runtime.Overrides{Rules: map[string]runtime.Override{"r": o}}
	}
	keys := func(pattern string, o runtime.KeyOverride) runtime.Overrides {
		return of(runtime.Override{Keys: map[string]runtime.KeyOverride{pattern: o}})
	}
	for _, test := range []struct {
		o     runtime.Overrides
		rules []*runtime.Rule
		want  string // "": valid
	}{
		{runtime.Overrides{}, nil, ""},
		{of(runtime.Override{Max: new(int64(runtime.MaxLog))}), []*runtime.Rule{rule}, ""},
		{of(runtime.Override{Max: new(int64(runtime.MaxLog + 1))}), nil, ""},
		{of(runtime.Override{Max: new(int64(runtime.MaxLog + 1))}), []*runtime.Rule{rule}, "the maximum of a sliding-log"},
		{keys("k", runtime.KeyOverride{Max: new(int64(runtime.MaxLog + 1))}), []*runtime.Rule{rule}, `override of key "k"`},
		{of(runtime.Override{Max: new(int64(-1))}), nil, "max -1 is not between"},
		{keys("a*b", runtime.KeyOverride{}), nil, "a * before the end"},
		{runtime.Overrides{}, []*runtime.Rule{nil}, "no rule"},
	} {
		err := test.o.Check(test.rules...)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(causes(err), test.want) {
			t.Errorf("%+v: got %v, want %q", test.o, err, test.want)
		}
	}
}

// The pattern of a key is in force for that key and for no other, whatever bytes
// it has.
func TestKeyPattern(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rule := &runtime.Rule{Name: "r", Window: time.Minute, Max: 5}
	for _, text := range []string{"a", "a*", "*", "", "a%b:c", "\x00\xff", "\xff*", "键", "{x}"} {
		key := runtime.NewKey().AddString(text)
		limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)),
			runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
				return runtime.Overrides{Rules: map[string]runtime.Override{"r": {Keys: map[string]runtime.KeyOverride{
					key.Pattern(): {Max: new(int64(7))}}}}}, nil
			}), time.Hour))
		for other, want := range map[string]int64{text: 7, text + "x": 5, "x" + text: 5} {
			if d, err := limiter.Peek(ctx, rule.Limit(runtime.NewKey().AddString(other))); err != nil || d.Limit != want {
				t.Errorf("pattern %q of %q: key %q has a limit of %d, %v, want %d", key.Pattern(), text, other, d.Limit, err, want)
			}
		}
		if err := limiter.Close(); err != nil {
			t.Error(err)
		}
	}
}
