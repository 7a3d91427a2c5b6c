package override

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/observe"
)

// An override ends on time though its file has gone, for every limiter that
// follows it, and each reports the error all the same.
func TestUntilWithoutSource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "limits.json")
		until := time.Now().Add(10 * time.Second).UTC().Format(time.RFC3339)
		text := `{"rules": {"r": {"max": 0, "until": "` + until + `"}, "s": {"max": 0}}}`
		limittest.OK(t, os.WriteFile(path, []byte(text), 0o600))
		source := File(path)
		var limiters []*runtime.Limiter
		failures := make([]int, 2)
		for i := range failures {
			limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithOverrides(source, time.Second),
				runtime.WithLogger(slog.New(slog.DiscardHandler)),
				runtime.WithObserver(&observe.Observer{Override: func(ev observe.OverrideEvent) {
					if errors.Is(ev.Err, os.ErrNotExist) {
						failures[i]++
					}
				}}))
			defer limiter.Close()
			limiters = append(limiters, limiter)
		}
		allowed := func(l *runtime.Limiter, rule string) bool {
			d, err := l.Peek(context.Background(), (&runtime.Rule{Name: rule, Window: time.Minute, Max: 5}).Limit(nil))
			return d.Allowed && err == nil
		}
		limittest.OK(t, os.Remove(path))
		time.Sleep(9 * time.Second)
		for i, l := range limiters {
			if allowed(l, "r") || allowed(l, "s") {
				t.Errorf("limiter %d: ended too early", i)
			}
		}
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		for i, l := range limiters {
			if !allowed(l, "r") || allowed(l, "s") {
				t.Errorf("limiter %d: r %t, s %t, want only r to be admitted", i, allowed(l, "r"), allowed(l, "s"))
			}
			if failures[i] != 1 {
				t.Errorf("limiter %d: %d failures reported in a minute, want 1", i, failures[i])
			}
		}
	})
}

// A source that never had an end returns nothing beside its error.
func TestLastGood(t *testing.T) {
	t.Parallel()
	r := reading{overrides: runtime.Overrides{Enabled: new(false)}}
	if o, err := r.lastGood(time.Now(), os.ErrClosed); err != os.ErrClosed || o.Enabled != nil {
		t.Errorf("got %+v, %v", o, err)
	}
	r.said = []statement{{target: Target{Rule: "r"}, change: Change{Until: time.Now().Add(time.Hour)}}}
	r.put(time.Time{})
	var last *private.Stale
	if o, err := r.lastGood(time.Now(), os.ErrClosed); !errors.Is(err, os.ErrClosed) || !errors.As(err, &last) || o.Enabled == nil {
		t.Errorf("got %+v, %v", o, err)
	}
}

// What has expired already when a file is read is told, until the file says something else.
func TestExpiredInAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "limits.yaml")
		source, limiter := File(path), runtime.New(nil, runtime.WithEnabled(func() bool { return true }))
		for text, want := range map[string][]string{
			"rules: {a: {max: 1, until: PAST}, b: {max: 1, until: SOON}, c: {keys: {k: {block: true, until: PAST}}}}": {"a", "c"},
			"rules: {a: {max: 1, max_until: PAST, max_then: 2}, b: {max: 1, until: SOON}}":                            nil,
			"rules: {b: {max: 1, until: PAST}, c: {max: 1, max_until: PAST, window: 5s}}":                             {"b"},
			"{}": nil,
		} {
			at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
			text = strings.NewReplacer("PAST", at(-time.Second), "SOON", at(time.Minute)).Replace(text)
			limittest.OK(t, os.WriteFile(path, []byte(text), 0o600))
			for range 2 { // the second time soon has been
				_, err := source.Overrides(t.Context())
				limittest.OK(t, err)
				var got []string
				for _, f := range limiter.Findings() {
					if f.Code == "override_over" {
						got = append(got, f.Rule)
					}
				}
				limittest.Equal(t, text, strings.Join(got, " "), strings.Join(want, " "))
				time.Sleep(time.Hour)
			}
		}
	})
}
