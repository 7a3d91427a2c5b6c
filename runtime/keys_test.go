package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestParseKey reads the texts of keys of all kinds back, also with a byte written
// as an operator may write it.
func TestParseKey(t *testing.T) {
	t.Parallel()
	part := rapid.OneOf(rapid.StringMatching(`[a-z0-9:%{}*]{0,60}`), rapid.String(), rapid.StringMatching(`x{90,300}`))
	rapid.Check(t, func(t *rapid.T) {
		key := runtime.NewKey()
		for _, s := range rapid.SliceOfN(part, 0, 4).Draw(t, "parts") {
			key.AddString(s)
		}
		for _, text := range []string{key.String(), strings.ReplaceAll(key.String(), "*", "%2A")} {
			parsed, err := runtime.ParseKey(text)
			if len(text) > 4096 {
				continue
			}
			if err != nil {
				t.Fatalf("ParseKey(%q): %v", text, err)
			}
			if got := parsed.String(); got != key.String() {
				t.Fatalf("ParseKey(%q) = %q, want %q", text, got, key)
			}
		}
	})
}

// TestParseKeyFindsTheCount charges keys, and looks at them and resets them by
// what stands in the Redis key.
func TestParseKeyFindsTheCount(t *testing.T) {
	t.Parallel()
	rule := &runtime.Rule{Name: "orders.Create", Max: 5, Window: runtime.MaxWindow}
	limiter := inMemory()
	for _, key := range []*runtime.Key{
		runtime.NewKey(),
		runtime.NewKey().AddString("ann").AddInt(7),
		runtime.NewKey().AddString("").AddString("a:b%{}\n*é"),
		runtime.NewKey().AddString(strings.Repeat("long ", 90)), // a hash in Redis
	} {
		taken(t, limiter, rule.Limit(key))
		parsed, err := runtime.ParseKey(key.String())
		if err != nil {
			t.Fatal(err)
		}
		wantLeft(t, limiter, rule.Limit(parsed), 4)
		ok(t, limiter.Reset(t.Context(), rule.Limit(parsed)))
		wantLeft(t, limiter, rule.Limit(key), 5)
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a%zz":                               "% without two",
		"a%2":                                "% without two",
		"a%61":                               "no key has the escape %61: write a",
		"a{b}":                               `no key has the byte '{': write %7B`,
		"a\nb":                               `write %0A`,
		"%3a":                                "% without two",
		"%sha256-00":                         "% without two",
		strings.Repeat("x", 4097):            "the most is 4096",
		"%invalid":                           "% without two",
		"%sha256-" + strings.Repeat("A", 64): "% without two",
	} {
		if _, err := runtime.ParseKey(text); !errors.Is(err, runtime.ErrInvalidKey) || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseKey(%.20q): %v, want ErrInvalidKey with %q", text, err, want)
		}
	}
}

// TestKeyDenied denies calls on each way that a call can take, and looks each
// reported key up.
func TestKeyDenied(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 90)
	stores := map[string]func(t *testing.T) runtime.Store{
		"memory": func(*testing.T) runtime.Store { return runtime.NewMemoryStore() },
		"redis": func(t *testing.T) runtime.Store {
			return runtime.NewRedisStore(redistest.Start(t).Client(t), patient)
		},
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			limiter := runtime.New(open(t), quiet, runtime.WithNamespace("shop"), observing(runtime.Observer{
				KeyDenied: func(_ context.Context, ev runtime.KeyDeniedEvent) {
					text := ev.Rule + " " + string(ev.Key)
					if ev.Shadow {
						text += " shadow"
					}
					got = append(got, text)
				},
			}))
			own := &runtime.Rule{Name: "a:b.Own", Max: 1, Window: time.Hour}
			prefixed := &runtime.Rule{Name: "Prefixed", Prefix: "p:", Max: 1, Window: time.Hour, Algorithm: runtime.TokenBucket, Block: time.Hour}
			shadow := &runtime.Rule{Name: "Shadow", Max: 1, Window: time.Hour, Mode: runtime.ModeShadow}
			never := &runtime.Rule{Name: "Never", Max: 0, Window: time.Hour}
			for _, limits := range [][]runtime.Limit{
				{own.Limit(runtime.NewKey().AddString("ann:1").AddInt(2))},
				{prefixed.Limit(runtime.NewKey().AddString(long))},
				{shadow.Limit(runtime.NewKey().AddString("bob"))},
				{own.Limit(nil), prefixed.Limit(runtime.NewKey().AddString("cy"))},
				{never.Limit(runtime.NewKey().AddString("dee"))},
			} {
				for range 3 { // admitted, denied by the store, and from memory
					_, _ = limiter.Take(t.Context(), limits...)
				}
				limiter.TakeEach(t.Context(), limits...)
			}
			slices.Sort(got)
			i := slices.IndexFunc(got, func(s string) bool { return strings.HasPrefix(s, "Prefixed %sha256-") })
			if i < 0 {
				t.Fatalf("no hash in %q", got)
			}
			hash := got[i]
			want := slices.Concat(
				slices.Repeat([]string{"Never dee"}, 4),
				slices.Repeat([]string{hash}, 3), slices.Repeat([]string{"Prefixed cy"}, 3),
				slices.Repeat([]string{"Shadow bob shadow"}, 3),
				slices.Repeat([]string{"a:b.Own "}, 3), slices.Repeat([]string{"a:b.Own ann%3A1:2"}, 3),
			)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
			key, err := runtime.ParseKey(strings.TrimPrefix(hash, "Prefixed "))
			if err != nil {
				t.Fatal(err)
			}
			if d, err := limiter.Peek(t.Context(), prefixed.Limit(key)); err != nil || !d.Blocked {
				t.Errorf("the hash of a blocked key finds %+v, %v", d, err)
			}
		})
	}
}

// An empty part of a key is counted with every decision, and logged once for
// each rule.
func TestEmptyPart(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 150)
	for name, c := range map[string]struct {
		key  *runtime.Key
		want string
		flag bool
	}{
		"none":           {runtime.NewKey(), "", false},
		"full":           {runtime.NewKey().AddString("a").AddInt(0), "a:0", false},
		"only":           {runtime.NewKey().AddString(""), "", true},
		"bytes":          {runtime.NewKey().AddBytes(nil), "", true},
		"first":          {runtime.NewKey().AddString("").AddString("a"), ":a", true},
		"last":           {runtime.NewKey().AddString("a").AddString(""), "a:", true},
		"two":            {runtime.NewKey().AddString("").AddString(""), ":", true},
		"escaped":        {runtime.NewKey().AddString("").AddString("a:b"), ":a%3Ab", true},
		"before long":    {runtime.NewKey().AddString("").AddString(long), ":" + long, true},
		"behind long":    {runtime.NewKey().AddString(long).AddString(""), long + ":", true},
		"between longer": {runtime.NewKey().AddString(long).AddString("").AddString("b").AddBytes(nil), long + "::b:", true},
		"full inline":    {runtime.NewKey().AddString(strings.Repeat("y", 102)).AddString(""), strings.Repeat("y", 102) + ":", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.key.String(); got != c.want {
				t.Errorf("key %q, want %q", got, c.want)
			}
			var out bytes.Buffer
			var flags []bool
			limiter := runtime.New(runtime.NewMemoryStore(), logger(&out), observing(runtime.Observer{
				Decision: func(_ context.Context, ev runtime.DecisionEvent) { flags = append(flags, ev.EmptyPart) },
			}))
			rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 10}
			if _, err := limiter.Peek(t.Context(), rule.Limit(c.key)); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), "empty") {
				t.Error("a look is logged:", out.String())
			}
			for range 3 {
				taken(t, limiter, rule.Limit(c.key))
			}
			if diff := cmp.Diff([]bool{c.flag, c.flag, c.flag}, flags); diff != "" {
				t.Error("empty parts of three decisions (-want +got):", diff)
			}
			want := 0
			if c.flag {
				want = 1
			}
			if lines := strings.Count(out.String(), "empty"); lines != want {
				t.Errorf("%d lines, want %d:\n%s", lines, want, out.String())
			}
		})
	}
}

// A part that is missing altogether stays invalid beside an empty one.
func TestEmptyAndInvalid(t *testing.T) {
	t.Parallel()
	limiter := inMemory(closed)
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 10}
	for name, key := range map[string]*runtime.Key{
		"before": runtime.NewKey().AddString("").AddInvalid("#r is nil"),
		"behind": runtime.NewKey().AddInvalid("#r is nil").AddString(""),
	} {
		if _, err := limiter.Take(t.Context(), rule.Limit(key)); err == nil {
			t.Error(name, "an invalid key is taken")
		}
	}
}

func TestLogNever(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	limiter := runtime.New(runtime.NewMemoryStore(), logger(&out))
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1}
	if _, err := limiter.Take(t.Context(), rule.Limit(nil).WithCost(2)); err == nil {
		t.Fatal("a cost above the max is admitted")
	}
	if !strings.Contains(out.String(), "retry_after=never ") {
		t.Error(out.String())
	}
}

// Rules without a Prefix count apart, also where one rule's name continues in
// another one's key.
func TestRulesWithoutPrefix(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	for name, store := range map[string]runtime.Store{"memory": runtime.NewMemoryStore(), "redis": runtime.NewRedisStore(server.Client(t), patient)} {
		limiter := runtime.New(store, quiet, closed)
		login := &runtime.Rule{Name: "login", Window: time.Hour, Max: 3}
		search := &runtime.Rule{Name: "search", Window: time.Second, Max: 100}
		one, two := runtime.Rule{Name: "a", Window: time.Hour, Max: 1}, runtime.Rule{Name: "a:b", Window: time.Hour, Max: 1}
		limits := []runtime.Limit{
			login.Limit(key("ann")), search.Limit(key("ann")),
			one.Limit(runtime.NewKey().AddString("b").AddString("")), two.Limit(key("")),
		}
		for i, limit := range limits {
			d, err := limiter.Take(ctx, limit)
			if err != nil || d.Remaining != d.Limit-1 {
				t.Errorf("%s, %d: got %+v, %v", name, i, d, err)
			}
		}
		ok(t, limiter.Reset(ctx, search.Limit(key("ann"))))
		wantLeft(t, limiter, login.Limit(key("ann")), 2)
	}
	for _, key := range []string{"rate_limit:login:ann", "rate_limit:a:b:", "rate_limit:a%3Ab:"} {
		if n := server.Client(t).Exists(ctx, key).Val(); n != 1 {
			t.Errorf("no key %q", key)
		}
	}
	rule := &runtime.Rule{Name: "login", Window: time.Hour, Max: 3}
	for namespace, want := range map[string]string{"": "rate_limit:login:", "shop": "shop:rate_limit:login:"} {
		if got := runtime.New(nil, runtime.WithNamespace(namespace)).KeysOf(rule).Prefix; got != want {
			t.Errorf("KeysOf has the prefix %q, want %q", got, want)
		}
	}
}

// A rule with neither a Prefix nor a Name is an error that names the remedy.
func TestRuleWithoutName(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	limiter := inMemory()
	limit := (&runtime.Rule{Window: time.Hour, Max: 1}).Limit(nil)
	_, taken := limiter.Take(ctx, limit)
	_, peeked := limiter.Peek(ctx, limit)
	for _, err := range []error{taken, peeked, limiter.TakeEach(ctx, limit)[0].Err, limiter.Reset(ctx, limit)} {
		if !errors.Is(err, runtime.ErrInvalidLimit) || !strings.Contains(err.Error(), "give it a Name") {
			t.Errorf("got %v", err)
		}
	}
}

// TestSameKey has a call name one key twice, as key=#from and key=#to do under one prefix
// when both are equal. It costs both, in every algorithm and store, whatever else it
// costs, and gives back both.
func TestSameKey(t *testing.T) {
	t.Parallel()
	stores := map[string]runtime.Store{"memory": runtime.NewMemoryStore()}
	stores["redis"] = runtime.NewRedisStore(redistest.Start(t).Client(t), patient)
	for name, rule := range serverRules(time.Hour, 20) {
		if rule.Block > 0 || rule.Wait > 0 || rule.Lease > 0 {
			continue
		}
		from, to := *rule, *rule
		from.Prefix, to.Prefix, to.Name = name+":", name+":", rule.Name+" 2"
		for storeName, store := range stores {
			t.Run(name+" "+storeName, func(t *testing.T) {
				t.Parallel()
				limiter := runtime.New(store, quiet, closed)
				defer func() { _ = limiter.Close() }()
				other := from.Limit(key("other"))
				limits := []runtime.Limit{from.Limit(key("k")), other, to.Limit(key("k")).WithCost(3)}
				d := taken(t, limiter, limits...)
				if n, o := left(t, limiter, limits[0]), left(t, limiter, other); n != 16 || o != 19 {
					t.Errorf("left %d and %d", n, o)
				}
				refunded(t, limiter, d, limits...)
				wantLeft(t, limiter, limits[0], 20)
				// The lower max holds.
				low := []runtime.Limit{from.Limit(key("low")), to.Limit(key("low")).WithMax(4)}
				first, second := taken(t, limiter, low...), taken(t, limiter, low...)
				if d, err := limiter.Take(t.Context(), low...); !errors.Is(err, runtime.ErrLimited) || d.Limit != 4 && rule.Burst == 0 {
					t.Errorf("got %+v, %v", d, err)
				}
				for _, d := range []runtime.Decision{first, second} {
					settled(t, limiter, d, low...)
				}
				// A key that is named twice makes no call impossible, and one that costs too
				// much stays so.
				one := []runtime.Limit{from.Limit(key("one")).WithMax(1), to.Limit(key("one")).WithMax(1)}
				d = taken(t, limiter, one...)
				refunded(t, limiter, d, one...)
				wantLeft(t, limiter, one[0], 1)
				if _, err := limiter.Take(t.Context(), from.Limit(key("one")), to.Limit(key("one")).WithCost(21)); !errors.Is(err, runtime.ErrCostExceedsLimit) {
					t.Errorf("above the max: %v", err)
				}
			})
		}
	}
}

// Limits that count in different ways have no meaning together on one key.
func TestSameKeyOfOtherTerms(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	one := &runtime.Rule{Name: "one", Prefix: "p:", Window: time.Hour, Max: 5}
	for i, change := range []func(*runtime.Rule){
		func(r *runtime.Rule) { r.Window = time.Minute },
		func(r *runtime.Rule) { r.Resolution = time.Second },
	} {
		two := *one
		two.Name = fmt.Sprint("two", i)
		change(&two)
		if _, err := limiter.Take(t.Context(), one.Limit(nil), two.Limit(nil)); !errors.Is(err, runtime.ErrInvalidLimit) {
			t.Errorf("change %d: %v", i, err)
		}
	}
	wantLeft(t, limiter, one.Limit(nil), 5)
}
