package runtime_test

import (
	"context"
	"errors"
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

// A key with a part that is too long for Redis is told as a hash, by which it is found.
func TestLongKeyRefused(t *testing.T) {
	t.Parallel()
	var told string
	limiter := inMemory(observing(observe.Observer{KeyRefused: func(_ context.Context, ev observe.KeyRefusedEvent) { told = string(ev.Key) }}))
	r := perHour(1)
	for range 2 {
		_, _ = limiter.Take(t.Context(), r.Limit(key(strings.Repeat("long ", 90))))
	}
	parsed, err := rule.ParseKey(told)
	if err != nil || !strings.HasPrefix(told, "%sha256-") {
		t.Fatalf("%q is read as %v", told, err)
	}
	refused(t, limiter, r.Limit(parsed))
}
