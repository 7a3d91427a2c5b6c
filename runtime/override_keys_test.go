package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

type keys = map[string]runtime.KeyOverride

// What is changed for keys holds for these alone, over what is changed for the
// rule, and over what is declared.
func TestOverrideKeys(t *testing.T) {
	t.Parallel()
	maximum := func(n int64) runtime.KeyOverride { return runtime.KeyOverride{Max: &n} }
	on, off := runtime.KeyOverride{Enabled: new(true)}, runtime.KeyOverride{Enabled: new(false)}
	long := strings.Repeat("long", 100)
	for _, test := range []struct {
		name string
		rule runtime.Override
		want map[string]int // of 10 calls, where 4 are declared
	}{
		{"quota", runtime.Override{Keys: keys{"a": maximum(6), "b": maximum(2)}}, map[string]int{"a": 6, "b": 2, "c": 4, "aa": 4}},
		{"allow list", runtime.Override{Keys: keys{"a": off}}, map[string]int{"a": 10, "b": 4}},
		{"block list", runtime.Override{Keys: keys{"a": maximum(0)}}, map[string]int{"a": 0, "b": 4}},
		{"nobody but", runtime.Override{Max: new(int64(0)), Keys: keys{"a": maximum(5), "b": off}}, map[string]int{"a": 5, "b": 10, "c": 0}},
		{"off but", runtime.Override{Enabled: new(false), Keys: keys{"a": on, "b": maximum(2)}}, map[string]int{"a": 4, "b": 10, "c": 10}},
		{"longest", runtime.Override{Keys: keys{"*": maximum(1), "p*": maximum(2), "premium-*": maximum(3), "premium-7": maximum(5), "premium-7*": maximum(6)}},
			map[string]int{"a": 1, "p": 2, "premium": 2, "premium-": 3, "premium-6": 3, "premium-7": 5, "premium-77": 6}},
		{"shadow", runtime.Override{Keys: keys{"a*": {Mode: new(runtime.Shadow)}}}, map[string]int{"a1": 10, "b": 4}},
		{"all but one in the shadow", runtime.Override{Mode: new(runtime.Shadow), Keys: keys{"a": {Mode: new(runtime.Enforce)}}}, map[string]int{"a": 4, "b": 10}},
		{"the rule's max stays", runtime.Override{Max: new(int64(7)), Keys: keys{"a": {Window: new(time.Minute)}}}, map[string]int{"a": 7, "b": 7}},
		{"a star of the key's own", runtime.Override{Keys: keys{"all%2A": maximum(2)}}, map[string]int{"all*": 2, "all": 4, "all*x": 4}},
		{"a key that is hashed", runtime.Override{Keys: keys{long: maximum(1), long + "-*": maximum(2)}}, map[string]int{long: 1, long + "-x": 2, long + "x": 4}},
		{"the key that is empty", runtime.Override{Keys: keys{"": maximum(1)}}, map[string]int{"": 1, "a": 4}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4}
				source := new(board)
				limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(source, time.Second))
				defer limiter.Close()
				passing(t, limiter, rule.Limit(key("before")), 1)
				source.set(one(test.rule), nil)
				time.Sleep(time.Second)
				synctest.Wait()
				for id, want := range test.want {
					limit := rule.Limit(key(id))
					if d, err := limiter.Peek(context.Background(), limit); err != nil || want < 10 && d.Limit != int64(want) || d.Allowed != (want > 0) {
						t.Errorf("%.20q: peek %+v, %v, want a limit of %d", id, d, err, want)
					}
					if got := passing(t, limiter, limit, 10); got != want {
						t.Errorf("%.20q: %d admitted, want %d", id, got, want)
					}
				}
				source.set(runtime.Overrides{}, nil)
				time.Sleep(time.Second)
				synctest.Wait()
				for id, had := range test.want {
					if got := passing(t, limiter, rule.Limit(key(id)), 10); test.name != "allow list" && test.name != "off but" && got != max(0, 4-min(had, 10)) && had <= 4 {
						t.Errorf("%.20q: %d admitted afterwards, had %d", id, got, had)
					}
				}
			})
		})
	}
}

// The whole limiter goes by the override of a key: a blocked one is told never to
// come back, TakeEach, Refund and Reset find it, and metrics have the rule's name.
func TestOverrideKeysEverywhere(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var told recorder[runtime.DecisionEvent]
	source := new(board)
	source.set(one(runtime.Override{Keys: keys{
		"blocked": {Max: new(int64(0))}, "acme:*": {Max: new(int64(6)), Window: new(2 * time.Hour)},
	}}), nil)
	limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(source, time.Hour),
		runtime.WithObserver(&runtime.Observer{Decision: func(_ context.Context, ev runtime.DecisionEvent) { told.add(ev) }}))
	defer limiter.Close()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4, Algorithm: runtime.SlidingCounter, Buckets: runtime.LayeredBuckets(6, 10)}
	user := func(tenant, user string) runtime.Limit {
		return rule.Limit(runtime.NewKey().AddString(tenant).AddString(user)).WithMax(3)
	}
	_, err := limiter.Take(ctx, rule.Limit(key("blocked")))
	if limited := (*runtime.LimitedError)(nil); !errors.As(err, &limited) || limited.RetryAfter != runtime.Never {
		t.Errorf("blocked: %v", err)
	}
	if _, err := limiter.Take(ctx, rule.Limit(key("blocked")).WithMax(9)); !errors.Is(err, runtime.ErrCostExceedsLimit) {
		t.Errorf("blocked, with a max of the call's own: %v", err)
	}
	outcomes := limiter.TakeEach(ctx, user("acme", "a"), user("other", "a"), rule.Limit(key("blocked")))
	for i, want := range []int64{6, 3, 0} {
		if outcomes[i].Limit != want || (outcomes[i].Err == nil) != (want > 0) {
			t.Errorf("outcome %d: %+v, want a limit of %d", i, outcomes[i], want)
		}
	}
	if err := limiter.Refund(ctx, outcomes[0].Decision, user("acme", "a")); err != nil {
		t.Error(err)
	}
	for range 2 {
		if got := passing(t, limiter, user("acme", "a"), 10); got != 6 {
			t.Errorf("%d admitted, want 6", got)
		}
		if err := limiter.Reset(ctx, user("acme", "a")); err != nil {
			t.Error(err)
		}
	}
	for _, ev := range told.all() {
		if ev.Rule != "r" {
			t.Errorf("told of the rule %q", ev.Rule)
		}
	}
	if group := limiter.KeysOf(rule); group.Expiry < 4*time.Hour {
		t.Errorf("keys live for %v, less than twice the longest window", group.Expiry)
	}
}

// The factor of an adaptive rule and a process's share apply to a key's numbers.
func TestOverrideKeysAreScaled(t *testing.T) {
	t.Parallel()
	source := new(board)
	source.set(one(runtime.Override{Keys: keys{"big": {Max: new(int64(40))}, "small": {Max: new(int64(4))}}}), nil)
	limits := func(limiter *runtime.Limiter, rule *runtime.Rule, want map[string]int) {
		t.Helper()
		for id, want := range want {
			if got := passing(t, limiter, rule.Limit(key(id)), 50); got != want {
				t.Errorf("%s: %d admitted, want %d", id, got, want)
			}
		}
	}
	halved := &runtime.Rule{Name: "r", Window: time.Hour, Max: 10, Adaptive: factor(0.5)}
	adaptive := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(source, time.Hour))
	defer adaptive.Close()
	_, _ = adaptive.Take(context.Background(), halved.Limit(key("first"))) // has the scaler called
	for deadline := time.Now().Add(time.Minute); adaptive.Factor(halved) != 0.5; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the scaler is not called")
		}
	}
	limits(adaptive, halved, map[string]int{"big": 20, "small": 2, "other": 5})

	for _, local := range []*runtime.Rule{
		{Name: "r", Window: time.Hour, Max: 10, Fail: runtime.FailLocal},
		{Name: "r", Window: time.Hour, Max: 10, Fail: runtime.FailLocal, Algorithm: runtime.TokenBucket},
	} {
		alone := runtime.New(nil, quiet, runtime.WithReplicas(2), runtime.WithOverrides(source, time.Hour))
		limits(alone, local, map[string]int{"big": 20, "small": 2, "other": 5})
		if err := alone.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A factor is a scaler that always says the same.
type factor float64

func (f factor) Factor(runtime.Load) float64 { return float64(f) }

// An override of a key that makes no sense rejects all, and is named.
func TestOverrideKeysRejected(t *testing.T) {
	t.Parallel()
	declared := &runtime.Rule{Name: "sliced", Window: time.Hour, Max: 5, Resolution: time.Minute}
	for _, test := range []struct {
		rule  string
		keys  keys
		wants string
	}{
		{"any", keys{"a*b": {}}, `override of rule "any", key "a*b" (1 of 1 in order): a * before the end`},
		{"any", keys{"a": {}, "b": {Max: new(int64(-1))}}, `override of rule "any", key "b" (2 of 2 in order): max -1 is not between 0 and`},
		{"any", keys{"b": {Window: new(time.Duration(0))}}, `override of rule "any", key "b" (1 of 1 in order): window 0s is not between`},
		{"any", keys{"b": {Mode: new(runtime.Mode(7))}}, `override of rule "any", key "b" (1 of 1 in order): unknown mode 7`},
		{"any", keys{"\x80": {}, "%80": {}}, `override of rule "any", key "\x80" (2 of 2 in order): the same as "%80"`},
		{"sliced", keys{"a": {}, "b*": {Max: new(int64(runtime.MaxLog + 1))}}, `override of key "b*": invalid rate limit: rule "sliced": max 1000001 is above`},
		{"sliced", keys{"b": {Window: new(time.Second)}, "c": {Window: new(time.Second)}}, `override of key "b": invalid rate limit: rule "sliced": resolution`},
	} {
		synctest.Test(t, func(t *testing.T) {
			var told recorder[runtime.OverrideEvent]
			source := new(board)
			source.set(runtime.Overrides{Rules: map[string]runtime.Override{"sliced": {Keys: keys{"k": {Max: new(int64(2))}}}}}, nil)
			limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(source, time.Second),
				runtime.WithObserver(&runtime.Observer{Override: told.add}))
			defer limiter.Close()
			passing(t, limiter, declared.Limit(nil), 1)
			source.set(runtime.Overrides{Rules: map[string]runtime.Override{"sliced": {Keys: keys{"k": {Max: new(int64(4))}}}, test.rule: {Keys: test.keys}}}, nil)
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if got := passing(t, limiter, declared.Limit(key("k")), 10); got != 2 {
				t.Errorf("%s: %d admitted, want 2", test.wants, got)
			}
			if events := told.all(); len(events) != 2 || events[1].Err == nil || !strings.Contains(causes(events[1].Err), test.wants) || events[1].Rules != 1 {
				t.Errorf("observed %+v, want an error with %q", events, test.wants)
			}
		})
	}
}

// Overrides of keys that are as they were are no news, in whatever map they come.
func TestOverrideKeysUnchanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told recorder[runtime.OverrideEvent]
		n := int64(0)
		limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			n++
			return one(runtime.Override{Keys: keys{
				"a": {Max: new(int64(1 + n/10))}, "b*": {Enabled: new(n < 20)}, fmt.Sprint("c", n/30): {Mode: new(runtime.Shadow)},
			}}), nil
		}), time.Second), runtime.WithObserver(&runtime.Observer{Override: told.add}))
		defer limiter.Close()
		time.Sleep(40 * time.Second)
		synctest.Wait()
		// The 10th, 20th, 30th and 40th differ, and the 20th and 30th in two ways.
		if events := told.all(); len(events) != 5 {
			t.Errorf("told %d times, want 5: %+v", len(events), events)
		}
	})
}

// Two tenants side by side on Redis, whose quotas change while calls are denied
// and that is remembered.
func TestOverrideKeysOnRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ctx := context.Background()
	taken := make(chan struct{}, 100)
	source := new(board)
	limiter := runtime.New(runtime.NewRedisStore(server.Client(t), runtime.WithTimeout(5*time.Second), runtime.WithDenialMemory(time.Hour)), quiet,
		runtime.WithOverrides(source, 5*time.Millisecond),
		runtime.WithObserver(&runtime.Observer{Override: func(ev runtime.OverrideEvent) {
			if ev.Err != nil {
				t.Error(ev.Err)
			}
			taken <- struct{}{}
		}}))
	defer limiter.Close()
	rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: 2}
	for _, id := range []string{"a", "b"} {
		if got := passing(t, limiter, rule.Limit(key(id)), 5); got != 2 {
			t.Fatalf("%s: %d admitted, want 2", id, got)
		}
	}
	for _, step := range []struct {
		name string
		of   runtime.KeyOverride
		want int
	}{
		{"raised", runtime.KeyOverride{Max: new(int64(5))}, 3},
		{"raised again", runtime.KeyOverride{Max: new(int64(6))}, 1},
		{"lowered", runtime.KeyOverride{Max: new(int64(3))}, 0},
		{"blocked", runtime.KeyOverride{Max: new(int64(0))}, 0},
		{"off", runtime.KeyOverride{Enabled: new(false)}, 10},
		{"shadow", runtime.KeyOverride{Mode: new(runtime.Shadow)}, 10},
		{"longer", runtime.KeyOverride{Max: new(int64(7)), Window: new(2 * time.Hour)}, 1},
		{"shorter", runtime.KeyOverride{Window: new(time.Millisecond)}, 10},
	} {
		source.set(one(runtime.Override{Keys: keys{"a": step.of}}), nil)
		select {
		case <-taken:
		case <-time.After(30 * time.Second):
			t.Fatal("overrides do not come into force")
		}
		got := 0
		for range 10 {
			if step.name == "shorter" {
				time.Sleep(2 * time.Millisecond) // the window, by Redis's clock
			}
			got += passing(t, limiter, rule.Limit(key("a")), 1)
		}
		if got != step.want {
			t.Errorf("%s: %d admitted, want %d", step.name, got, step.want)
		}
		d, err := limiter.Take(ctx, rule.Limit(key("b")))
		if !errors.Is(err, runtime.ErrLimited) || d.Source != runtime.SourceRecalled {
			t.Errorf("%s: the other tenant got %+v, %v", step.name, d, err)
		}
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

// Permits go by the override of a key, too.
func TestOverrideKeysOfPermits(t *testing.T) {
	t.Parallel()
	source := new(board)
	source.set(one(runtime.Override{Keys: keys{"wide*": {Max: new(int64(3))}, "blocked": {Max: new(int64(0))}}}), nil)
	for name, store := range map[string]runtime.Store{
		"memory": runtime.NewMemoryStore(),
		"redis":  runtime.NewRedisStore(redistest.Start(t).Client(t), runtime.WithTimeout(5*time.Second)),
	} {
		limiter := runtime.New(store, quiet, runtime.WithOverrides(source, time.Hour))
		rule := &runtime.Rule{Name: "r", Window: time.Minute, Max: 1, Algorithm: runtime.Concurrency}
		for id, want := range map[string]int{"wide-1": 3, "narrow": 1, "blocked": 0} {
			if got := passing(t, limiter, rule.Limit(key(id)), 5); got != want {
				t.Errorf("%s: %s: %d in flight, want %d", name, id, got, want)
			}
		}
		if err := limiter.Close(); err != nil {
			t.Error(err)
		}
	}
}
