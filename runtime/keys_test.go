package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
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
			parsed, err := rule.ParseKey(text)
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
		"a%invalid":                          "% without two",
		"%invalidate":                        "% without two",
		"%sha256-" + strings.Repeat("A", 64): "% without two",
	} {
		if _, err := rule.ParseKey(text); !errors.Is(err, runtime.ErrInvalidKey) || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseKey(%.20q): %v, want ErrInvalidKey with %q", text, err, want)
		}
	}
}

// testKeyRefused refuses calls on each way that a call can take, and looks each reported key up.
func testKeyRefused(t *testing.T, replica replicas) {
	long := strings.Repeat("long ", 90)
	var got []string
	limiter := replica(observing(observe.Observer{
		KeyRefused: func(_ context.Context, ev observe.KeyRefusedEvent) {
			got = append(got, strings.TrimSuffix(fmt.Sprintf("%s %s shadow %v", ev.Rule, ev.Key, ev.Shadow), " shadow false"))
		},
	}))
	own := &runtime.Rule{Name: "a:b.Own", Max: 1, Window: time.Hour}
	prefixed := &runtime.Rule{Name: "Prefixed", Prefix: "p:", Max: 1, Window: time.Hour, Algorithm: runtime.TokenBucket, Block: time.Hour}
	shadow := &runtime.Rule{Name: "Shadow", Max: 1, Window: time.Hour, Mode: runtime.ModeShadow}
	never := &runtime.Rule{Name: "Never", Max: 0, Window: time.Hour}
	for _, limits := range [][]runtime.Limit{
		{own.Limit(runtime.NewKey().AddString("ann:1").AddInt(2))},
		{prefixed.Limit(key(long))},
		{shadow.Limit(key("bob"))},
		{own.Limit(nil), prefixed.Limit(key("cy"))},
		{never.Limit(key("dee"))},
	} {
		for range 3 { // admitted, refused by the store, and from memory
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
		slices.Repeat([]string{"Shadow bob shadow true"}, 3),
		slices.Repeat([]string{"a:b.Own "}, 3), slices.Repeat([]string{"a:b.Own ann%3A1:2"}, 3),
	)
	slices.Sort(want)
	same(t, "refused keys", want, got)
	parsed, err := rule.ParseKey(strings.TrimPrefix(hash, "Prefixed "))
	ok(t, err)
	blockedBy(t, limiter, prefixed.Limit(parsed))
}

// An empty part of a key is counted with every decision, and logged once for each rule.
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
		"full inline":    {runtime.NewKey().AddString(strings.Repeat("y", 97)).AddString(""), strings.Repeat("y", 97) + ":", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equal(t, "key", c.key.String(), c.want)
			var out lines
			var flags []bool
			limiter := inMemory(out.Logger(), observing(observe.Observer{
				Decision: func(_ context.Context, ev observe.DecisionEvent) { flags = append(flags, ev.EmptyPart) },
			}))
			limit := perHour(10).Limit(c.key)
			wantLeft(t, limiter, limit, 10)
			equal(t, "log of a look", out.String(), "")
			for range 3 {
				taken(t, limiter, limit)
			}
			same(t, "empty parts of three decisions", []bool{c.flag, c.flag, c.flag}, flags)
			equal(t, "lines about it", strings.Count(out.String(), "is empty"), map[bool]int{true: 1}[c.flag])
		})
	}
}

// testRulesWithoutPrefix has rules without a Prefix count apart, also where one rule's name
// continues in another one's key.
func testRulesWithoutPrefix(t *testing.T, replica replicas) {
	limiter := replica()
	login := &runtime.Rule{Name: "login", Window: time.Hour, Max: 3}
	search := &runtime.Rule{Name: "search", Window: time.Second, Max: 100}
	one, two := runtime.Rule{Name: "a", Window: time.Hour, Max: 1}, runtime.Rule{Name: "a:b", Window: time.Hour, Max: 1}
	for name, limit := range map[string]runtime.Limit{
		"rate_limit:login:ann": login.Limit(key("ann")), "rate_limit:search:ann": search.Limit(key("ann")),
		"rate_limit:a:b:": one.Limit(runtime.NewKey().AddString("b").AddString("")), "rate_limit:a%3Ab:": two.Limit(key("")),
	} {
		if d := taken(t, limiter, limit); d.Remaining != d.Limit-1 {
			t.Errorf("%s: got %+v", name, d)
		}
		equal(t, "is the key", bridge.LimiterOf(limiter).RedisKey(limit), t.Name()+":"+name)
	}
	ok(t, limiter.Reset(t.Context(), search.Limit(key("ann"))))
	wantLeft(t, limiter, login.Limit(key("ann")), 2)
	for namespace, want := range map[string]string{"": "rate_limit:login:", "shop": "shop:rate_limit:login:"} {
		equal(t, "is the prefix", bridge.LimiterOf(runtime.New(nil, runtime.WithNamespace(namespace))).KeysOf(login).Prefix, want)
	}
}

// testSameKey has a call name one key twice, as key=#from and key=#to do under one prefix
// when both are equal. It costs both, in every algorithm and store, whatever else it
// costs, and gives back both.
func testSameKey(t *testing.T, replica replicas) {
	limiter := replica()
	for name, rule := range serverRules(time.Hour, 20) {
		if rule.Block > 0 || rule.Wait > 0 || rule.Lease > 0 {
			continue
		}
		from, to := *rule, *rule
		from.Prefix, to.Prefix, to.Name = name+":", name+":", rule.Name+" 2"
		t.Run(name, func(t *testing.T) {
			other := from.Limit(key("other"))
			limits := []runtime.Limit{from.Limit(key("k")), other, to.Limit(key("k")).WithCost(3)}
			d := taken(t, limiter, limits...)
			if n, o := left(t, limiter, limits[0]), left(t, limiter, other); n != 16 || o != 19 {
				t.Errorf("left %d and %d", n, o)
			}
			refunded(t, limiter, d)
			wantLeft(t, limiter, limits[0], 20)
			// The lower max holds.
			low := []runtime.Limit{from.Limit(key("low")), to.Limit(key("low")).WithMax(4)}
			first, second := taken(t, limiter, low...), taken(t, limiter, low...)
			if d, _ := refused(t, limiter, low...); d.Limit != 4 && rule.Burst == 0 {
				t.Errorf("got %+v", d)
			}
			settled(t, limiter, first)
			settled(t, limiter, second)
			// A key that is named twice makes no call impossible, and one that costs too
			// much stays so.
			one := []runtime.Limit{from.Limit(key("one")).WithMax(1), to.Limit(key("one")).WithMax(1)}
			d = taken(t, limiter, one...)
			refunded(t, limiter, d)
			wantLeft(t, limiter, one[0], 1)
			refusedAs(t, limiter, runtime.ErrCostExceedsLimit, from.Limit(key("one")), to.Limit(key("one")).WithCost(21))
		})
	}
}
