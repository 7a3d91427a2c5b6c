package runtime_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// Nonsense is refused as a whole, whatever else is said beside it, and told.
func TestOverridesRefused(t *testing.T) {
	t.Parallel()
	declared := []*runtime.Rule{
		{Name: "log", Prefix: "log:", Window: time.Hour, Max: 5},
		{Name: "sliced", Prefix: "sliced:", Window: time.Hour, Max: 5, Resolution: time.Minute},
	}
	for _, test := range []struct {
		rule  string
		of    rule.Override
		err   error
		wants string
	}{
		{"any", rule.Override{Mode: new(runtime.Mode(7))}, nil, `unknown mode 7`},
		{"log", rule.Override{}, fmt.Errorf("line 7: %w", runtime.ErrInvalidOverrides), "line 7"},
		{"log", rule.Override{}, errors.New("no such file"), "no such file"},

		{"any", rule.Override{Keys: keys{"\x80": {}, "%80": {}}}, nil, `override of rule "any", key "\x80" (2 of 2 in order): the same as "%80"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out lines
			var seen recorder[observe.OverrideEvent]
			good := runtime.Overrides{Rules: map[string]rule.Override{"log": {Max: new(int64(2))}}}
			limiter, board := following(t, time.Second, out.Logger(), observing(observe.Observer{Override: seen.add}))
			for _, r := range declared {
				passing(t, limiter, r.Limit(nil), 1)
			}
			board.put(good)
			bad := runtime.Overrides{Enabled: new(false), Rules: map[string]rule.Override{"log": {Max: new(int64(4))}}}
			bad.Rules[test.rule] = test.of
			board.set(bad, test.err)
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if !limiter.Enabled() || passing(t, limiter, declared[0].Limit(key("k")), 10) != 2 {
				t.Errorf("%s: the last good overrides are not in force", test.wants)
			}
			rejected, what := test.wants != "no such file", "rejected"
			if !rejected {
				what = "cannot be read"
			}
			equal(t, test.wants+": lines in half a minute", strings.Count(out.String(), "overrides of rate limits "+what+", the last good ones stay in force"), 1)
			time.Sleep(time.Minute)
			board.put(good)
			events := seen.all()
			if len(events) != 4 || events[3] != (observe.OverrideEvent{Rules: 1, Enabled: true}) {
				t.Fatalf("%s: observed %+v, want an error twice, and that all is well", test.wants, events)
			}
			for _, ev := range events[1:3] {
				if ev.Err == nil || errors.Is(ev.Err, runtime.ErrInvalidOverrides) != rejected || !strings.Contains(causes(ev.Err), test.wants) || ev.Rules != 1 || !ev.Enabled {
					t.Errorf("observed %+v, want an error with %q", ev, test.wants)
				}
			}
		})
	}
}

// Overrides that a limiter would reject are found before they are written.
func TestOverridesCheck(t *testing.T) {
	t.Parallel()
	r := &runtime.Rule{Name: "r", Window: time.Minute, Max: 5}
	month := &runtime.Rule{Name: "r", Algorithm: runtime.FixedWindow, Period: rule.Month, Zone: "Europe/Berlin", Max: 5}
	maxOf := func(max int64) runtime.Overrides { return overridesOf(rule.Override{Max: &max}) }
	for _, test := range []struct {
		o     runtime.Overrides
		rules []*runtime.Rule
		want  string // "": valid
	}{
		{runtime.Overrides{}, nil, ""},
		{maxOf(rule.MaxLog), []*runtime.Rule{r}, ""},
		{maxOf(rule.MaxLog + 1), nil, ""},
		{maxOf(rule.MaxLog + 1), []*runtime.Rule{r}, "the maximum of a sliding-log"},
		{overridesOf(rule.Override{Keys: keys{"k": maximum(rule.MaxLog + 1)}}), []*runtime.Rule{r}, `override of key "k"`},
		{maxOf(-1), nil, "max -1 is not between"},
		{overridesOf(rule.Override{Keys: keys{"a*b": {}}}), nil, "a * before the end"},
		{runtime.Overrides{}, []*runtime.Rule{nil}, "no rule"},
		{maxOf(7), []*runtime.Rule{month}, ""},
		{overridesOf(rule.Override{Window: new(time.Hour)}), []*runtime.Rule{month}, "leave the window out"},
		{overridesOf(rule.Override{Keys: keys{"k": {Window: new(time.Hour)}}}), []*runtime.Rule{month}, "leave the window out"},
	} {
		err := test.o.Check(test.rules...)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(causes(err), test.want) {
			t.Errorf("%+v: got %v, want %q", test.o, err, test.want)
		}
	}
}

// A line in the log stays short, whatever the names are.
func TestOverridesLogIsShort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var out lines
		_, board := following(t, time.Second, out.Logger())
		long := runtime.Overrides{Rules: map[string]rule.Override{}}
		for i := range 100 {
			long.Rules[fmt.Sprint(i, strings.Repeat("x", 10_000))] = rule.Override{}
		}
		board.set(long, nil)
		time.Sleep(2 * time.Minute)
		long.Rules = maps.Clone(long.Rules) // the other is the limiter's to read
		long.Rules[strings.Repeat("x", 10_000)] = rule.Override{Max: new(int64(-1))}
		board.put(long)
		if n := strings.Count(out.String(), "\n"); n != 3 || len(out.String()) > n*1500 {
			t.Errorf("%d lines of %d bytes", n, len(out.String()))
		}
	})
}
