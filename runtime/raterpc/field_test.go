package raterpc_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/raterpc"
)

const method = "/shop.v1.Orders/Get"

// nobody is a peer without address and metadata.
type nobody struct{}

func (nobody) Addr() string           { return "" }
func (nobody) Header(string) []string { return nil }

// take has a limiter in memory decide n calls under rules, within one RPC.
func take(t *testing.T, call *raterpc.Call, ctx context.Context, n int, rules ...*runtime.Rule) error {
	t.Helper()
	limiter := runtime.New(runtime.NewMemoryStore())
	defer func() { _ = limiter.Close() }()
	var limits []runtime.Limit
	for _, r := range rules {
		limits = append(limits, r.Limit(nil))
	}
	var err error
	for range n {
		_, err = limiter.Take(ctx, limits...)
	}
	return err
}

func TestFields(t *testing.T) {
	log := &runtime.Rule{Name: "pkg.Orders.Get", Window: time.Minute, Max: 10}
	for _, test := range []struct {
		name          string
		calls         int
		opts          []raterpc.Option
		rules         []*runtime.Rule
		limit, policy string
	}{
		{name: "nothing met"},
		{name: "log", calls: 4, rules: []*runtime.Rule{log},
			limit: `"Orders.Get";r=6;t=36`, policy: `"Orders.Get";q=10;w=60`},
		{name: "refused", calls: 11, rules: []*runtime.Rule{log},
			limit: `"Orders.Get";r=0;t=60`, policy: `"Orders.Get";q=10;w=60`},
		{name: "several", calls: 1, rules: []*runtime.Rule{log, {Name: "pkg.Orders.Get#2", Window: time.Hour, Max: 20}},
			limit: `"Orders.Get";r=9;t=54, "Orders.Get#2";r=19;t=3420`, policy: `"Orders.Get";q=10;w=60, "Orders.Get#2";q=20;w=3600`},
		{name: "window of no whole seconds", calls: 1, rules: []*runtime.Rule{{Name: "x", Window: 1500 * time.Millisecond, Max: 2}},
			limit: `"x";r=1;t=1`, policy: `"x";q=2`},
		{name: "bucket", calls: 3, rules: []*runtime.Rule{{Name: "x", Window: time.Minute, Max: 6, Burst: 5, Algorithm: runtime.TokenBucket}},
			limit: `"x";r=2;t=20`, policy: `"x";q=5;w=50`},
		{name: "fixed window", calls: 1, rules: []*runtime.Rule{{Name: "x", Window: time.Hour, Max: 4, Algorithm: runtime.FixedWindow}},
			limit: `"x";r=3;t=3600`, policy: `"x";q=4;w=3600`},
		{name: "shadow", calls: 1, rules: []*runtime.Rule{{Name: "x", Window: time.Hour, Max: 4, Mode: runtime.ModeShadow}}},
		{name: "never", calls: 1, rules: []*runtime.Rule{{Name: "x", Window: time.Hour, Max: 0}},
			policy: `"x";q=0;w=3600`},
		{name: "hidden", calls: 1, opts: []raterpc.Option{raterpc.WithoutFields()}, rules: []*runtime.Rule{log}},
		{name: "internal", calls: 1, opts: []raterpc.Option{raterpc.WithPolicy("pkg.Ord*", ratefield.Policy{Audience: ratefield.Internal})}, rules: []*runtime.Rule{log}},
		{name: "hostile name", calls: 1, opts: []raterpc.Option{raterpc.WithPolicy("pkg.Orders.Get", ratefield.Policy{Name: "a\"\\茶\n"})}, rules: []*runtime.Rule{log},
			limit: `"a\"\\%E8%8C%B6%0A";r=9;t=54`, policy: `"a\"\\%E8%8C%B6%0A";q=10;w=60`},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, call := raterpc.NewServer(test.opts...).Begin(t.Context(), method, nobody{})
				_ = take(t, call, ctx, test.calls, test.rules...)
				limit, policy := call.Fields()
				if diff := cmp.Diff([]string{test.limit, test.policy}, []string{limit, policy}); diff != "" {
					t.Errorf("fields (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Whatever a rule is called, an independent parser reads what was meant.
func FuzzFields(f *testing.F) {
	for _, name := range []string{"GetByID#2", `q"uo\te`, "茶", "\x00\x7f", "%25", "a.b.", "", "\xff"} {
		f.Add(name, int64(5), int64(1500), uint8(0))
	}
	f.Fuzz(func(t *testing.T, name string, limit, ms int64, algorithm uint8) {
		rule := &runtime.Rule{
			Name: "x", Prefix: "x:", Window: time.Duration(ms) * time.Millisecond, Max: limit, Algorithm: runtime.Algorithm(algorithm % 5),
		}
		server := raterpc.NewServer(raterpc.WithPolicy("x", ratefield.Policy{Name: name}))
		ctx, call := server.Begin(t.Context(), method, nobody{})
		if err := take(t, call, ctx, 1, rule); err != nil {
			t.Skip()
		}
		left, policy := call.Fields()
		if name == "" || left == "" {
			return
		}
		for field, value := range map[string]string{"r t": left, "q": policy} {
			list, err := httpsfv.UnmarshalList([]string{value})
			if err != nil || len(list) != 1 {
				t.Fatalf("%q: %v", value, err)
			}
			item, ok := list[0].(httpsfv.Item)
			if text, isString := item.Value.(string); !ok || !isString || text == "" {
				t.Errorf("%q is no String", value)
			}
			for param := range strings.FieldsSeq(field) {
				got, ok := item.Params.Get(param)
				if n, isInt := got.(int64); !ok || !isInt || n < 0 || param == "t" && n < 1 {
					t.Errorf("%q: %s = %v", value, param, got)
				}
			}
			if w, ok := item.Params.Get("w"); ok && w != int64(rule.Window/time.Second) {
				t.Errorf("%q: w = %v of %v", value, w, rule.Window)
			}
		}
	})
}

// A stream that meets ever more rules remembers a bounded number.
func TestRecordIsBounded(t *testing.T) {
	ctx, call := raterpc.NewServer().Begin(t.Context(), method, nobody{})
	for i := range 100 {
		_ = take(t, call, ctx, 1, &runtime.Rule{Name: strings.Repeat("x", i+1), Window: time.Minute, Max: 1})
	}
	if _, policy := call.Fields(); strings.Count(policy, "q=") != 16 {
		t.Errorf("policies: %s", policy)
	}
	// A refusal by one that was not remembered still is a refusal.
	r := call.Refusal(take(t, call, ctx, 2, &runtime.Rule{Name: "y", Window: time.Minute, Max: 1}))
	if r == nil || r.Code != raterpc.CodeResourceExhausted || len(r.Details) != 3 {
		t.Errorf("refusal %+v", r)
	}
}
