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

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// What has an end is in force until then, in a file and in a hash alike, and what
// has none stays.
func TestUntil(t *testing.T) {
	t.Parallel()
	type rules = map[string]rule.Override
	type keys = map[string]rule.KeyOverride
	one := rule.KeyOverride{Max: new(int64(1))}
	start := time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)
	fromHash, err := parseHash(map[string]string{
		"*":         `{"enabled": false, "until": "2026-11-22T14:00:01Z"}`,
		"r":         `{"max": 1, "until": "2026-11-22T15:00:02+01:00"}`,
		`["r","m"]`: `{"max": 1, "until": "2026-11-22T14:00:01Z"}`,
		`["r","k"]`: `{"max": 1, "until": "2026-11-22T14:00:03.5Z"}`,
		`["r","l"]`: `{"max": 1}`,
		"s":         `{"max": 1, "until": "2026-11-22T14:00:03Z"}`,
	})
	limittest.OK(t, err)
	fromFile, err := parseFile("a.yaml", []byte(`
rules:
  r:
    max: 1
    until: 2026-11-22T14:00:02Z
    keys:
      n: {max: 1}
      m: {max: 1, until: "2026-11-22T14:00:01Z"}
  s: {max: 1, until: 2026-11-22T14:00:03Z}
`))
	limittest.OK(t, err)
	before := fromHash.at(start)
	for _, test := range []struct {
		after    time.Duration
		enabled  *bool
		fromHash rules
		fromFile rules
	}{
		{999 * time.Millisecond, new(false),
			rules{"r": {Max: one.Max, Keys: keys{"m": one, "k": one, "l": one}}, "s": {Max: one.Max}},
			rules{"r": {Max: one.Max, Keys: keys{"n": one, "m": one}}, "s": {Max: one.Max}}},
		{time.Second, nil,
			rules{"r": {Max: one.Max, Keys: keys{"k": one, "l": one}}, "s": {Max: one.Max}},
			rules{"r": {Max: one.Max, Keys: keys{"n": one}}, "s": {Max: one.Max}}},
		{2 * time.Second, nil, rules{"r": {Keys: keys{"k": one, "l": one}}, "s": {Max: one.Max}}, rules{"s": {Max: one.Max}}},
		{3 * time.Second, nil, rules{"r": {Keys: keys{"k": one, "l": one}}}, rules{}},
		{4 * time.Second, nil, rules{"r": {Keys: keys{"l": one}}}, rules{}},
		{0, nil, rules{"r": {Keys: keys{"l": one}}}, rules{}}, // a clock that goes back brings nothing back
	} {
		if diff := cmp.Diff(runtime.Overrides{Enabled: test.enabled, Rules: test.fromHash}, fromHash.at(start.Add(test.after))); diff != "" {
			t.Errorf("hash after %v (-want +got):\n%s", test.after, diff)
		}
		if diff := cmp.Diff(runtime.Overrides{Rules: test.fromFile}, fromFile.at(start.Add(test.after))); diff != "" {
			t.Errorf("file after %v (-want +got):\n%s", test.after, diff)
		}
	}
	if len(before.Rules["r"].Keys) != 3 || before.Rules["s"].Max == nil {
		t.Errorf("what a limiter may be reading has changed: %+v", before)
	}
	for _, text := range []string{`"soon"`, `"2026-11-22"`, `7`, `"0001-01-01T00:00:00Z"`} {
		_, err := parseHash(map[string]string{"r": `{"until": ` + text + `}`})
		if err == nil || !strings.Contains(err.Error(), "2026-11-22T15:00:00Z") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

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
	r.addExpiry(timed{Target{Rule: "r"}, Change{Until: time.Now().Add(time.Hour)}, false}, time.Time{})
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
