package override

import (
	stdcmp "cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

func ofRule(name string) Target          { return Target{Rule: name} }
func ofKeys(name, pattern string) Target { return Target{Rule: name, Pattern: pattern, Keys: true} }

func ofShares(name, pattern string) Target {
	return Target{Rule: name, Pattern: pattern, Shares: true}
}

func toMax(n int64) Edit { return Edit{Set: rule.KeyOverride{Max: &n}} }

// Whatever an editor writes, the source reads back as that, beside all else.
func TestEditorAndSource(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	editor, source := NewEditor(client, "limits"), Redis(client, "limits")
	want := runtime.Overrides{Rules: map[string]rule.Override{}}
	field := func(t *rapid.T, name string) bool { return rapid.Bool().Draw(t, name) }
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom([]string{"a", "[", `["`, "b.C#2", "规则", "<&>"}).Draw(t, "rule")
		pattern := rapid.SampledFrom([]string{"", "*", "a", "a:*", "%2A", "%3A:x", `"]`, "键", "%FF"}).Draw(t, "pattern")
		target := Target{Rule: r}
		if field(t, "keys") {
			target = ofKeys(r, pattern)
		} else if field(t, "shares") {
			target = ofShares(r, pattern)
		}
		var c rule.KeyOverride
		if target.Shares {
			c.Weight = new(rapid.Int64Range(1, rule.MaxWeight).Draw(t, "weight"))
		} else if field(t, "burst") {
			c.Burst = new(rapid.Int64Range(1, rule.MaxCount).Draw(t, "burst"))
		}
		if !target.Shares && field(t, "max") {
			c.Max = new(rapid.Int64Range(0, rule.MaxCount).Draw(t, "max"))
		}
		if !target.Shares && field(t, "enabled") {
			c.Enabled = new(field(t, "on"))
		}
		if !target.Shares && field(t, "window") {
			c.Window = new(time.Duration(rapid.Int64Range(int64(rule.MinWindow), int64(rule.MaxWindow)).Draw(t, "window")))
		}
		if c == (rule.KeyOverride{}) || !target.Shares && field(t, "mode") {
			c.Mode = new(rapid.SampledFrom([]runtime.Mode{runtime.ModeEnforce, runtime.ModeSoft, runtime.ModeShadow}).Draw(t, "mode"))
		}
		if _, err := editor.Edit(ctx, Edit{Target: target, Set: c}); err != nil {
			t.Fatal(err)
		}
		entry := want.Rules[r]
		all, patterns := ownOf(entry), patternsOf(&entry, target.list())
		if target.list() != "" {
			all = (*patterns)[pattern]
		}
		all.Max, all.Burst, all.Weight = stdcmp.Or(c.Max, all.Max), stdcmp.Or(c.Burst, all.Burst), stdcmp.Or(c.Weight, all.Weight)
		all.Enabled, all.Window, all.Mode = stdcmp.Or(c.Enabled, all.Enabled), stdcmp.Or(c.Window, all.Window), stdcmp.Or(c.Mode, all.Mode)
		if target.list() == "" {
			entry = overrideOf(all, entry)
		} else if *patterns == nil {
			*patterns = map[string]rule.KeyOverride{pattern: all}
		} else {
			(*patterns)[pattern] = all
		}
		want.Rules[r] = entry
		got, err := source.Overrides(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		entries, err := editor.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Target == target && e.KeyOverride != all {
				if diff := cmp.Diff(all, e.KeyOverride); diff != "" {
					t.Errorf("listed (-want +got):\n%s", diff)
				}
			}
		}
	})
}

// Many editors at the same time lose no change.
func TestEditorsTogether(t *testing.T) {
	t.Parallel()
	client := redistest.StartCluster(t).Client(t)
	editTogether(t, client, "limits")
	editTogether(t, client, "{shop}:limits") // whose history is in its slot, too
}

func editTogether(t *testing.T, client redis.UniversalClient, key string) {
	ctx := context.Background()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 10 {
				for {
					edit := toMax(int64(n))
					edit.Target = ofKeys("r", fmt.Sprint(i))
					_, err := NewEditor(client, key).Edit(ctx, edit)
					if err == nil {
						break
					}
					if !strings.Contains(err.Error(), "try again") {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	entries, err := NewEditor(client, key).List(ctx)
	if err != nil || len(entries) != 4 {
		t.Fatalf("got %v, %v", entries, err)
	}
	for i, e := range entries {
		if e.Target != ofKeys("r", fmt.Sprint(i)) || *e.Max != 9 {
			t.Errorf("entry %d is %+v", i, e)
		}
	}
}

// Without Redis an edit says so.
func TestEditorWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	client.Set(context.Background(), "text", "", 0)
	edit := toMax(1)
	edit.Target = ofRule("r")
	if _, err := NewEditor(client, "text").Edit(context.Background(), edit); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("a key of another type: %v", err)
	}
	server.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := NewEditor(client, "limits").Edit(ctx, Edit{Target: ofRule("r"), Remove: true}); err == nil {
		t.Errorf("got %v", err)
	}
}
