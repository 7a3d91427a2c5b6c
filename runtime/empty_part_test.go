package runtime_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
)

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
