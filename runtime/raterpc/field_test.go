package raterpc_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/raterpc"
)

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
		ctx, call := server.Begin(t.Context(), method, nobody)
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
	ctx, call := raterpc.NewServer().Begin(t.Context(), method, nobody)
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
