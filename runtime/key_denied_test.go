package runtime_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

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
