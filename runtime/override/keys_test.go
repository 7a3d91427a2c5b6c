package override

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	_ "github.com/rategen/rategen/internal/testkit/seed" // rapid begins there
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

var withKeys = runtime.Overrides{Rules: map[string]rule.Override{
	"a": {Max: new(int64(10)), Keys: map[string]rule.KeyOverride{
		"premium-*": {Max: new(int64(1000)), Window: new(5 * time.Second), Mode: new(runtime.ModeShadow)},
		"tenant-7":  {Enabled: new(false)},
	}},
	"b": {Keys: map[string]rule.KeyOverride{"": {Max: new(int64(0))}, "x:*": {}}},
	"c": {Burst: new(int64(20)), Shares: map[string]rule.KeyOverride{"premium-*": {Weight: new(int64(4))}, "x": {}}},
}}

// A file and a hash say the same of keys and shares.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text string }{
		{"a.yaml", `
rules:
  a:
    max: 10
    keys:
      premium-*: {max: 1000, window: 5s, mode: shadow}
      "tenant-7":
        enabled: false
  b:
    keys: {"": {max: 0}, "x:*": {}}
  c: {burst: 20, shares: {premium-*: {weight: 4}, x: {}}}
`},
		{"a.json", `{"rules": {
			"a": {"max": 10, "keys": {"premium-*": {"max": 1000, "window": "5s", "mode": "shadow"}, "tenant-7": {"enabled": false}}},
			"b": {"keys": {"": {"max": 0}, "x:*": {}}}, "c": {"burst": 20, "shares": {"premium-*": {"weight": 4}, "x": {}}}}}`},
	} {
		got, err := said(parseFile(test.name, []byte(test.text)))
		if diff := cmp.Diff(withKeys, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
	for name, fields := range map[string]map[string]string{
		"one by one": {
			"a": `{"max": 10}`, `["a", "premium-*"]`: `{"max": 1000, "window": "5s", "mode": "shadow"}`,
			`["a","tenant-7"]`: `{"enabled": false}`, `["b",""]`: `{"max": 0}`, `[ "b" , "x:*" ]`: `{}`,
			"c": `{"burst": 20}`, `["c", "share", "premium-*"]`: `{"weight": 4}`, `["c","share","x"]`: `{}`,
		},
	} {
		got, err := said(parseHash(fields))
		if diff := cmp.Diff(withKeys, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestKeysErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"a.yaml", "rules: {r: {keys: {k: {keys: {}}}}}", `rule "r": key "k": line 1: unknown field "keys": there are allow, block, burst, enabled, max, mode, until, window, and max_until, max_then and so on`},
		{"a.yaml", "rules:\n  r:\n    keys:\n      k: {max: x}\n", `rule "r": key "k": line 4: max is text`},
		{"a.json", `{"rules": {"r": {"keys": {"k": {}, "k": {}}}}}`, `field "k" comes twice`},
		{"a.json", `{"rules": {"r": {"keys": ["k"]}}}`, `keys is a list: write an object such as {"premium-*": {"max": 1000}}`},
		{"a.json", "{\"rules\": {\"r\": {\"keys\": {\"\xff\": {}}}}}", "not UTF-8: write a byte above 0x7F of a key as %XX"},
	} {
		if _, err := said(parseFile(test.name, []byte(test.text))); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.text, err, test.want)
		}
	}
	const twice = "another field is for the same: leave one out"
	const remedy = `a field that starts with [ is a list in JSON: write ["rule", "key"]`
	for _, test := range []struct{ field, value, want string }{
		{`["a"`, `{}`, remedy},
		{`[a, b]`, `{}`, remedy},
		{`[]`, `{}`, remedy},
		{`["a","b","c"]`, `{}`, remedy},
		{`["a",7]`, `{}`, remedy},
		{`["a",null]`, `{}`, remedy},
		{`["a"]x`, `{}`, remedy},
		{"[\"a\",\"\xff\"]", `{}`, remedy},
		{`["*","k"]`, `{}`, "the rule is *: name one"},
		{`["r","share"]`, `{"weight": 1}`, `unknown field "weight"`},
		{`["r","shares","k"]`, `{"weight": 1}`, remedy},
		{`["r","share","k"]`, `{"max": 1}`, `unknown field "max"`},
		{`["r", "share","k"]`, `{}`, twice}, // beside ["r","share","k"]
		{`["r", "k"]`, `{}`, twice},         // beside ["r","k"]
		{`["r"]`, `{}`, twice},              // beside r
		{`["r","l"]`, `{"keys": {}}`, `unknown field "keys"`},
		{`["r","l"]`, `{"max": "1"}`, "max is text"},
		{`["r","l"]`, `max`, "not JSON"},
	} {
		fields := map[string]string{"r": `{}`, `["r","k"]`: `{}`, `["r","share","k"]`: `{}`, test.field: test.value}
		if o, err := said(parseHash(fields)); err == nil || !strings.Contains(err.Error(), test.want) || o.Rules != nil {
			t.Errorf("%s: got %+v, %v, want %q", test.field, o, err, test.want)
		}
	}
}

// No name of a rule and no key can be taken for others in a field.
func TestFieldOfHostileNames(t *testing.T) {
	t.Parallel()
	hostile := rapid.OneOf(rapid.String(), rapid.StringMatching(`[\["\],\\*:{}% ]{0,8}`), rapid.SampledFrom([]string{
		"a", `["a"]`, `["a","b"]`, `a","b`, `\`, "\x00", "*", "",
	}))
	rapid.Check(t, func(t *rapid.T) {
		want := []string{hostile.Draw(t, "rule"), hostile.Draw(t, "key")}
		if want[0] == All {
			t.Skip()
		}
		for n := 1; n <= 2; n++ {
			field, err := json.Marshal(want[:n])
			if err != nil {
				t.Fatal(err)
			}
			target := Target{Rule: want[0]}
			if n == 2 {
				target = ofKeys(want[0], want[1])
				shares := ofShares(want[0], want[1])
				if got, err := targetOf(fieldOf(shares)); err != nil || got != shares {
					t.Errorf("got %+v, %v, want %+v", got, err, shares)
				}
			}
			for _, field := range []string{string(field), fieldOf(target)} {
				if got, err := targetOf(field); err != nil || got != target {
					t.Errorf("%s: got %+v, %v, want %+v", field, got, err, target)
				}
			}
		}
	})
}

// Tenants get their quotas, are blocked and are let through, on a real Redis while
// calls go on, from a file and from a hash.
func TestKeysLive(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	client := server.Client(t)
	path := filepath.Join(t.TempDir(), "limits.json")
	write := func(text string) {
		t.Helper()
		limittest.OK(t, os.WriteFile(path+".new", []byte(text), 0o600))
		limittest.OK(t, os.Rename(path+".new", path))
	}
	for name, test := range map[string]struct {
		source runtime.OverrideSource
		set    func(key, value string) // all that is overridden
	}{
		"file": {File(path), func(key, value string) { write(fmt.Sprintf(`{"rules": {"r": {"keys": {%q: %s}}}}`, key, value)) }},
		"hash": {Redis(client, "limits"), func(key, value string) {
			field, _ := json.Marshal([]string{"r", key})
			client.HSet(ctx, "limits", string(field), value)
		}},
	} {
		test.set("nobody", `{}`)
		told := make(chan observe.OverrideEvent, 100)
		limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second)), runtime.WithNamespace(name),
			runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithOverrides(test.source, 5*time.Millisecond),
			runtime.WithObserver(&observe.Observer{Override: func(ev observe.OverrideEvent) { told <- ev }}))
		next := func() {
			t.Helper()
			select {
			case ev := <-told:
				if ev.Err != nil {
					t.Fatal(ev.Err)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("nothing is told")
			}
		}
		next()
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 3}
		admitted := func(tenant string) (n int) {
			for user := range int64(2) {
				for range 6 {
					if _, err := limiter.Take(ctx, rule.Limit(runtime.NewKey().AddString(tenant).AddInt(user))); err == nil {
						n++
					}
				}
			}
			return n
		}
		if got := admitted("acme"); got != 6 {
			t.Errorf("%s: %d admitted as declared, want 6", name, got)
		}
		for _, step := range []struct {
			value string
			want  int // of 6 calls each of two users, of whom each was admitted 3
		}{
			{`{"max": 5}`, 4},
			{`{"max": 0}`, 0},
			{`{"enabled": false}`, 12},
			{`{"mode": "shadow"}`, 12},
			{`{"max": 4}`, 0},
		} {
			test.set("acme:*", step.value)
			next()
			if got := admitted("acme"); got != step.want {
				t.Errorf("%s: %s: %d admitted, want %d", name, step.value, got, step.want)
			}
		}
		if got := admitted("other"); got != 6 {
			t.Errorf("%s: %d admitted of the other tenant, want 6", name, got)
		}
		if err := limiter.Close(); err != nil {
			t.Error(err)
		}
	}
}

// 100,000 keys, in a quick run a tenth of them, come from a file and from a hash, and are
// read once while they are the same.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	n := effort.Choose(10_000, 100_000)
	fields, list := make(map[string]string, n), make([]string, n)
	for i := range n {
		key := fmt.Sprintf("tenant-%08d:*", i)
		fields[fmt.Sprintf(`["r",%q]`, key)] = fmt.Sprintf(`{"max":%d}`, i%1000)
		list[i] = fmt.Sprintf(`%q: {"max": %d}`, key, i%1000)
	}
	path := filepath.Join(t.TempDir(), "limits.json")
	limittest.OK(t, os.WriteFile(path, []byte(`{"rules": {"r": {"keys": {`+strings.Join(list, ",\n")+`}}}}`), 0o600))
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr, ReadTimeout: 5 * time.Minute, WriteTimeout: 5 * time.Minute})
	defer client.Close()
	ctx := context.Background()
	limittest.OK(t, client.HSet(ctx, "limits", fields).Err())
	var read []runtime.Overrides
	for _, source := range []runtime.OverrideSource{File(path), Redis(client, "limits")} {
		o, err := look(source)
		if err != nil || len(o.Rules["r"].Keys) != n {
			t.Fatalf("%d keys, %v", len(o.Rules["r"].Keys), err)
		}
		read = append(read, o)
		again, err := look(source)
		if err != nil || fmt.Sprintf("%p", again.Rules) != fmt.Sprintf("%p", o.Rules) {
			t.Errorf("what is the same is read again: %v", err)
		}
	}
	if !reflect.DeepEqual(read[0].Rules, read[1].Rules) {
		t.Error("the file and the hash differ")
	}
	client.HSet(ctx, "limits", `["r","tenant-00000007:*"]`, `{"max":5000}`)
	o, err := look(Redis(client, "limits"))
	if err != nil || *o.Rules["r"].Keys["tenant-00000007:*"].Max != 5000 {
		t.Errorf("after a change: %v", err)
	}
}
