package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

type keys = map[string]runtime.KeyOverride

func maximum(n int64) runtime.KeyOverride { return runtime.KeyOverride{Max: &n} }

// What is changed in each field holds for the calls after the next look, for a key over
// its rule and for a rule over what was declared. What was declared holds again when it
// is taken back.
func TestOverrides(t *testing.T) {
	t.Parallel()
	on, off := runtime.KeyOverride{Enabled: new(true)}, runtime.KeyOverride{Enabled: new(false)}
	long := strings.Repeat("long", 100)
	for _, test := range []struct {
		name string
		to   runtime.Overrides
		max  int64          // of the call, 0: the rule's
		want map[string]int // of 10 calls, where 4 are declared
	}{
		{"nothing", runtime.Overrides{}, 0, map[string]int{"a": 4}},
		{"another rule", runtime.Overrides{Rules: map[string]runtime.Override{"other": {Max: new(int64(9))}}}, 0, map[string]int{"a": 4}},
		{"max raised", one(runtime.Override{Max: new(int64(6))}), 0, map[string]int{"a": 6}},
		{"max lowered", one(runtime.Override{Max: new(int64(2))}), 0, map[string]int{"a": 2}},
		{"max 0", one(runtime.Override{Max: new(int64(0))}), 0, map[string]int{"a": 0}},
		{"max of the call's own", one(runtime.Override{Max: new(int64(6))}), 3, map[string]int{"a": 6}},
		{"a max of the call's own that makes no sense", one(runtime.Override{Max: new(int64(6))}), -3, map[string]int{"a": 6}},
		{"window, and a max of the call's own", one(runtime.Override{Window: new(time.Minute)}), 3, map[string]int{"a": 3}},
		{"shadow", one(runtime.Override{Mode: new(runtime.ModeShadow)}), 0, map[string]int{"a": 10}},
		{"off", one(runtime.Override{Enabled: new(false)}), 0, map[string]int{"a": 10}},
		{"off, of a call that makes no sense", one(runtime.Override{Enabled: new(false)}), -3, map[string]int{"a": 10}},
		{"on", one(runtime.Override{Enabled: new(true)}), 0, map[string]int{"a": 4}},
		{"all off", runtime.Overrides{Enabled: new(false)}, 0, map[string]int{"a": 10}},
		{"all on", runtime.Overrides{Enabled: new(true)}, 0, map[string]int{"a": 4}},

		{"quota", one(runtime.Override{Keys: keys{"a": maximum(6), "b": maximum(2)}}), 0, map[string]int{"a": 6, "b": 2, "c": 4, "aa": 4}},
		{"allow list", one(runtime.Override{Keys: keys{"a": off}}), 0, map[string]int{"a": 10, "b": 4}},
		{"block list", one(runtime.Override{Keys: keys{"a": maximum(0)}}), 0, map[string]int{"a": 0, "b": 4}},
		{"nobody but", one(runtime.Override{Max: new(int64(0)), Keys: keys{"a": maximum(5), "b": off}}), 0, map[string]int{"a": 5, "b": 10, "c": 0}},
		{"off but", one(runtime.Override{Enabled: new(false), Keys: keys{"a": on, "b": maximum(2)}}), 0, map[string]int{"a": 4, "b": 10, "c": 10}},
		{"longest", one(runtime.Override{Keys: keys{"*": maximum(1), "p*": maximum(2), "premium-*": maximum(3), "premium-7": maximum(5), "premium-7*": maximum(6)}}),
			0, map[string]int{"a": 1, "p": 2, "premium": 2, "premium-": 3, "premium-6": 3, "premium-7": 5, "premium-77": 6}},
		{"shadow of keys", one(runtime.Override{Keys: keys{"a*": {Mode: new(runtime.ModeShadow)}}}), 0, map[string]int{"a1": 10, "b": 4}},
		{"all but one in shadow mode", one(runtime.Override{Mode: new(runtime.ModeShadow), Keys: keys{"a": {Mode: new(runtime.ModeEnforce)}}}), 0, map[string]int{"a": 4, "b": 10}},
		{"the rule's max stays", one(runtime.Override{Max: new(int64(7)), Keys: keys{"a": {Window: new(time.Minute)}}}), 0, map[string]int{"a": 7, "b": 7}},
		{"a star of the key's own", one(runtime.Override{Keys: keys{"all%2A": maximum(2)}}), 0, map[string]int{"all*": 2, "all": 4, "all*x": 4}},
		{"a key that is hashed", one(runtime.Override{Keys: keys{long: maximum(1), long + "-*": maximum(2)}}), 0, map[string]int{long: 1, long + "-x": 2, long + "x": 4}},
		{"the key that is empty", one(runtime.Override{Keys: keys{"": maximum(1)}}), 0, map[string]int{"": 1, "a": 4}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4}
				limiter, board := following(t, time.Second)
				wantPassing(t, limiter, rule.Limit(key("before")), 10, 4)
				board.put(test.to)
				for id, want := range test.want {
					limit := rule.Limit(key(id))
					if test.max != 0 {
						limit = limit.WithMax(test.max)
					} else if d, err := limiter.Peek(t.Context(), limit); err != nil || want < 10 && d.Limit != int64(want) || d.Allowed != (want > 0) {
						t.Errorf("%.20q: peek %+v, %v, want a limit of %d", id, d, err, want)
					}
					wantPassing(t, limiter, limit, 10, want)
				}
				if got, want := limiter.Enabled(), test.name != "all off"; got != want {
					t.Errorf("enabled: %t, want %t", got, want)
				}
				board.put(runtime.Overrides{})
				wantPassing(t, limiter, rule.Limit(key("after")), 10, 4)
			})
		})
	}
}

// The counts that there are go on to count, on Redis too, where denials are remembered:
// a raised max is seen at once, and a denial of another limit stays free.
func TestOverrideKeepsCounts(t *testing.T) {
	t.Parallel()
	steps := []struct {
		name string
		to   runtime.KeyOverride
		want int // of 10 calls, after 2
	}{
		{"raised", maximum(5), 3},
		{"raised again", maximum(6), 1},
		{"lowered below what is counted", maximum(3), 0},
		{"blocked", maximum(0), 0},
		{"off", runtime.KeyOverride{Enabled: new(false)}, 10},
		{"on again: nothing was counted meanwhile", maximum(6), 0},
		{"shadow", runtime.KeyOverride{Mode: new(runtime.ModeShadow)}, 10},
		{"longer", runtime.KeyOverride{Max: new(int64(7)), Window: new(2 * time.Hour)}, 1},
		{"shorter", runtime.KeyOverride{Window: new(time.Millisecond)}, 10},
	}
	forKey := func(k runtime.KeyOverride) runtime.Overrides { return one(runtime.Override{Keys: keys{"a": k}}) }
	forRule := func(k runtime.KeyOverride) runtime.Overrides {
		return one(runtime.Override{Enabled: k.Enabled, Max: k.Max, Window: k.Window, Mode: k.Mode})
	}
	follow := func(t *testing.T, store runtime.Store, denier runtime.Source, override func(runtime.KeyOverride) runtime.Overrides, other runtime.Limit) {
		board, seen := new(board), make(chan error, 100)
		limiter := runtime.New(store, quiet, runtime.WithOverrides(board, 5*time.Millisecond),
			observing(runtime.Observer{Override: func(ev runtime.OverrideEvent) { seen <- ev.Err }}))
		defer limiter.Close()
		limit := (&runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: 2}).Limit(key("a"))
		for _, l := range []runtime.Limit{limit, other} {
			wantPassing(t, limiter, l, 5, 2)
		}
		for _, step := range steps {
			board.set(override(step.to), nil)
			select {
			case err := <-seen:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("overrides do not come into force")
			}
			got := 0
			for range 10 {
				if step.name == "shorter" {
					time.Sleep(2 * time.Millisecond) // the window, by Redis's clock
				}
				got += passing(t, limiter, limit, 1)
			}
			if got != step.want {
				t.Errorf("%s: %d admitted, want %d", step.name, got, step.want)
			}
			if d, _ := denied(t, limiter, other); d.Source != denier {
				t.Errorf("%s: the other limit got %+v", step.name, d)
			}
		}
	}
	otherKey := (&runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: 2}).Limit(key("b"))
	otherRule := (&runtime.Rule{Name: "o", Prefix: "o:", Window: time.Hour, Max: 2}).Limit(nil)
	for name, override := range map[string]func(runtime.KeyOverride) runtime.Overrides{"rule": forRule, "key": forKey} {
		other := otherRule
		if name == "key" {
			other = otherKey
		}
		t.Run("memory "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { follow(t, runtime.NewMemoryStore(), runtime.SourceStore, override, other) })
		})
		t.Run("redis "+name, func(t *testing.T) {
			store := runtime.NewRedisStore(redistest.Start(t).Client(t), patient, runtime.WithDenialMemory(time.Hour))
			follow(t, store, runtime.SourceRecalled, override, other)
		})
	}
}

// Nonsense is refused as a whole, whatever else is said beside it, and told.
func TestOverridesRefused(t *testing.T) {
	t.Parallel()
	declared := []*runtime.Rule{
		{Name: "log", Prefix: "log:", Window: time.Hour, Max: 5},
		{Name: "sliced", Prefix: "sliced:", Window: time.Hour, Max: 5, Resolution: time.Minute},
	}
	for _, test := range []struct {
		rule  string
		of    runtime.Override
		err   error
		wants string
	}{
		{"any", runtime.Override{Max: new(int64(-1))}, nil, `override of rule "any": max -1 is not between 0 and 9007199254740991`},
		{"any", runtime.Override{Max: new(int64(runtime.MaxAmount + 1))}, nil, `is not between 0 and`},
		{"any", runtime.Override{Window: new(time.Duration(0))}, nil, `window 0s is not between 1ms and 366 days`},
		{"any", runtime.Override{Window: new(runtime.MaxWindow + 1)}, nil, `is not between 1ms and 366 days`},
		{"any", runtime.Override{Mode: new(runtime.Mode(7))}, nil, `unknown mode 7`},
		{"log", runtime.Override{Max: new(int64(runtime.MaxLog + 1))}, nil, `rule "log": max 1000001 is above 1000000`},
		{"sliced", runtime.Override{Window: new(time.Second)}, nil, `rule "sliced": resolution: 1m0s is longer than the window of 1s`},
		{"log", runtime.Override{}, fmt.Errorf("line 7: %w", runtime.ErrInvalidOverrides), "line 7"},
		{"log", runtime.Override{}, errors.New("no such file"), "no such file"},

		{"any", runtime.Override{Keys: keys{"a*b": {}}}, nil, `override of rule "any", key "a*b" (1 of 1 in order): a * before the end`},
		{"any", runtime.Override{Keys: keys{"a": {}, "b": maximum(-1)}}, nil, `override of rule "any", key "b" (2 of 2 in order): max -1 is not between 0 and`},
		{"any", runtime.Override{Keys: keys{"b": {Window: new(time.Duration(0))}}}, nil, `override of rule "any", key "b" (1 of 1 in order): window 0s is not between`},
		{"any", runtime.Override{Keys: keys{"b": {Mode: new(runtime.Mode(7))}}}, nil, `override of rule "any", key "b" (1 of 1 in order): unknown mode 7`},
		{"any", runtime.Override{Keys: keys{"\x80": {}, "%80": {}}}, nil, `override of rule "any", key "\x80" (2 of 2 in order): the same as "%80"`},
		{"sliced", runtime.Override{Keys: keys{"a": {}, "b*": maximum(runtime.MaxLog + 1)}}, nil, `override of key "b*": invalid rate limit: rule "sliced": max 1000001 is above`},
		{"sliced", runtime.Override{Keys: keys{"b": {Window: new(time.Second)}, "c": {Window: new(time.Second)}}}, nil, `override of key "b": invalid rate limit: rule "sliced": resolution`},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out lines
			var seen recorder[runtime.OverrideEvent]
			good := runtime.Overrides{Rules: map[string]runtime.Override{"log": {Max: new(int64(2))}}}
			limiter, board := following(t, time.Second, out.Logger(), observing(runtime.Observer{Override: seen.add}))
			for _, rule := range declared {
				passing(t, limiter, rule.Limit(nil), 1)
			}
			board.put(good)
			bad := runtime.Overrides{Enabled: new(false), Rules: map[string]runtime.Override{"log": {Max: new(int64(4))}}}
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
			if events := seen.all(); len(events) != 2 || events[1].Err == nil || errors.Is(events[1].Err, runtime.ErrInvalidOverrides) != rejected || !strings.Contains(causes(events[1].Err), test.wants) || events[1].Rules != 1 || !events[1].Enabled {
				t.Errorf("observed %+v, want an error with %q", events, test.wants)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if events := seen.all(); len(events) != 3 {
				t.Errorf("%s: %d events after another minute, want 3", test.wants, len(events))
			}
			board.put(good)
			if events := seen.all(); len(events) != 4 || events[3] != (runtime.OverrideEvent{Rules: 1, Enabled: true}) {
				t.Errorf("%s: nobody is told that all is well: %+v", test.wants, events)
			}
		})
	}
}

// Overrides that a limiter would reject are found before they are written.
func TestOverridesCheck(t *testing.T) {
	t.Parallel()
	rule := &runtime.Rule{Name: "r", Window: time.Minute, Max: 5}
	month := &runtime.Rule{Name: "r", Algorithm: runtime.FixedWindow, Period: runtime.Month, Zone: "Europe/Berlin", Max: 5}
	maxOf := func(max int64) runtime.Overrides { return one(runtime.Override{Max: &max}) }
	for _, test := range []struct {
		o     runtime.Overrides
		rules []*runtime.Rule
		want  string // "": valid
	}{
		{runtime.Overrides{}, nil, ""},
		{maxOf(runtime.MaxLog), []*runtime.Rule{rule}, ""},
		{maxOf(runtime.MaxLog + 1), nil, ""},
		{maxOf(runtime.MaxLog + 1), []*runtime.Rule{rule}, "the maximum of a sliding-log"},
		{one(runtime.Override{Keys: keys{"k": maximum(runtime.MaxLog + 1)}}), []*runtime.Rule{rule}, `override of key "k"`},
		{maxOf(-1), nil, "max -1 is not between"},
		{one(runtime.Override{Keys: keys{"a*b": {}}}), nil, "a * before the end"},
		{runtime.Overrides{}, []*runtime.Rule{nil}, "no rule"},
		{maxOf(7), []*runtime.Rule{month}, ""},
		{one(runtime.Override{Window: new(time.Hour)}), []*runtime.Rule{month}, "leave the window out"},
		{one(runtime.Override{Keys: keys{"k": {Window: new(time.Hour)}}}), []*runtime.Rule{month}, "leave the window out"},
	} {
		err := test.o.Check(test.rules...)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(causes(err), test.want) {
			t.Errorf("%+v: got %v, want %q", test.o, err, test.want)
		}
	}
}

// A rule that is met only later and that its override does not fit stays as it
// was declared, and that is told once. What is new beside it is taken over all the same.
func TestOverrideOfRuleMetLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var refused atomic.Int64
		limiter, board := following(t, time.Second, observing(runtime.Observer{Override: func(ev runtime.OverrideEvent) {
			if ev.Err != nil {
				refused.Add(1)
			}
		}}))
		bad := runtime.Override{Max: new(int64(runtime.MaxLog + 1))}
		late := &runtime.Rule{Name: "late", Prefix: "late:", Window: time.Hour, Max: 5}
		fine := &runtime.Rule{Name: "fine", Prefix: "fine:", Window: time.Hour, Max: 5}
		for want := 3; want < 5; want++ {
			board.put(runtime.Overrides{Rules: map[string]runtime.Override{"late": bad, "fine": {Max: new(int64(want))}}})
			var calls sync.WaitGroup
			for range 10 {
				calls.Go(func() { limiter.Take(context.Background(), late.Limit(nil), fine.Limit(nil)) })
			}
			calls.Wait()
			wantPassing(t, limiter, fine.Limit(key(fmt.Sprint(want))), 10, want)
		}
		wantPassing(t, limiter, late.Limit(key("k")), 10, 5)
		equal(t, "events", refused.Load(), 1)
	})
}

// A name that nobody calls is most likely misspelt, unless its rule is registered.
func TestOverrideOfUnknownName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var out lines
		limiter, board := following(t, time.Second, out.Logger())
		board.put(runtime.Overrides{Rules: map[string]runtime.Override{"met": {}, "registered": {}, "mett": {}}})
		passing(t, limiter, (&runtime.Rule{Name: "met", Window: time.Hour, Max: 5}).Limit(nil), 1)
		limiter.Register(&runtime.Rule{Name: "registered", Window: time.Hour, Max: 5})
		const said = "overrides name rules that no call has used"
		time.Sleep(50 * time.Second)
		if strings.Contains(out.String(), said) {
			t.Errorf("warned too early:\n%s", out.String())
		}
		board.set(runtime.Overrides{Rules: map[string]runtime.Override{"met": {}, "registered": {}, "mett": {Max: new(int64(1))}}}, nil)
		time.Sleep(time.Hour)
		if n := strings.Count(out.String(), said); n != 1 || !strings.Contains(out.String(), `level=WARN msg="`+said+`: check the names" code=overrides_unmet unmet=1 rules=[mett]`) {
			t.Errorf("warned %d times, want once:\n%s", n, out.String())
		}
	})
}

// A line in the log stays short, whatever the names are.
func TestOverridesLogIsShort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var out lines
		_, board := following(t, time.Second, out.Logger())
		long := runtime.Overrides{Rules: map[string]runtime.Override{}}
		for i := range 100 {
			long.Rules[fmt.Sprint(i, strings.Repeat("x", 10_000))] = runtime.Override{}
		}
		board.set(long, nil)
		time.Sleep(2 * time.Minute)
		long.Rules = maps.Clone(long.Rules) // the other is the limiter's to read
		long.Rules[strings.Repeat("x", 10_000)] = runtime.Override{Max: new(int64(-1))}
		board.put(long)
		if n := strings.Count(out.String(), "\n"); n != 3 || len(out.String()) > n*1500 {
			t.Errorf("%d lines of %d bytes", n, len(out.String()))
		}
	})
}

// A program that makes a rule for every call is served, and fills neither its memory with
// them nor its log.
func TestRulesWithoutEnd(t *testing.T) {
	t.Parallel()
	var out lines
	limiter := runtime.New(&brokenStore{}, out.Logger(), runtime.WithFailurePolicy(runtime.FailLocal), runtime.WithReplicas(2),
		overridden(one(runtime.Override{Max: new(int64(2))})))
	defer limiter.Close()
	for i := range int64(10_500) {
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 10, Algorithm: runtime.FixedWindow, Adaptive: always(1)}
		limit := rule.Limit(runtime.NewKey().AddInt(i))
		limiter.Measure(rule, time.Now())
		wantPassing(t, limiter, limit, 2, 1)
		if f := limiter.Factor(rule); f != 1 {
			t.Fatalf("rule %d: factor %v", i, f)
		}
	}
	equal(t, "rules are kept in mind", limiter.KnownRules(), 10_000)
	// Each known rule has its two lines, the others share theirs.
	if n := strings.Count(out.String(), "\n"); n > 2*10_000+1000 {
		t.Errorf("%d lines in the log", n)
	}
}

// A source may change what it has handed out, in its next call.
func TestOverridesAreCopied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		most, turn, maxes := new(int64(0)), 0, []int64{2, 3, -5, -6, 4}
		rules := map[string]runtime.Override{"r": {Max: most}}
		limiter := inMemory(runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			*most = maxes[turn]
			turn++
			return runtime.Overrides{Rules: rules}, nil
		}), time.Second))
		defer limiter.Close()
		for i, want := range []int{2, 3, 3, 3, 4} {
			// A rule that is met for the first time takes its override as it was.
			rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 5}
			wantPassing(t, limiter, rule.Limit(runtime.NewKey().AddInt(int64(i))), 10, want)
			if i < 4 {
				time.Sleep(time.Second)
				synctest.Wait()
			}
		}
	})
}

// A charge is given back to where it was made, whatever became of its rule, and a reset
// finds the key that an overridden rule counts under.
func TestRefundAfterOverride(t *testing.T) {
	t.Parallel()
	for name, override := range map[string]runtime.Override{
		"off":      {Enabled: new(false)},
		"max 0":    {Max: new(int64(0))},
		"max 1":    {Max: new(int64(1))},
		"shadow":   {Mode: new(runtime.ModeShadow), Max: new(int64(1))},
		"window":   {Window: new(2 * time.Hour)},
		"as it is": {},
	} {
		for _, algorithm := range algorithms {
			synctest.Test(t, func(t *testing.T) {
				rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4, Algorithm: algorithm}
				limiter, board := following(t, time.Second)
				limit := rule.Limit(key("k")).WithCost(4)
				d := taken(t, limiter, limit)
				board.put(one(override))
				refunded(t, limiter, d)
				board.put(runtime.Overrides{})
				equal(t, fmt.Sprint(name, ", ", algorithm, ": left"), left(t, limiter, limit), 4)
			})
		}
	}
	limiter := inMemory(overridden(one(runtime.Override{Window: new(2 * time.Hour)})))
	defer limiter.Close()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 3, Algorithm: runtime.SlidingCounter, Buckets: runtime.LayeredBuckets(6, 10)}
	for range 2 {
		wantPassing(t, limiter, rule.Limit(nil), 5, 3)
		ok(t, limiter.Reset(t.Context(), rule.Limit(nil)))
	}
}

// The lines about one rule stay a line a second, however often it is changed.
func TestLogOfOverriddenRule(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var out lines
		limiter, board := following(t, 10*time.Millisecond, out.Logger())
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1}
		for i := range int64(100) {
			board.set(one(runtime.Override{Max: new(1 + i%2)}), nil)
			passing(t, limiter, rule.Limit(nil), 3)
			time.Sleep(10 * time.Millisecond)
		}
		equal(t, "lines about denials in a second", strings.Count(out.String(), "call over its rate limit"), 1)
	})
}

// A decision says whether an override of its rule or of its key holds for it.
func TestOverriddenDecisions(t *testing.T) {
	t.Parallel()
	var seen recorder[runtime.DecisionEvent]
	limiter := inMemory(observing(runtime.Observer{Decision: withContext(seen.add)}), overridden(runtime.Overrides{Rules: map[string]runtime.Override{
		"rule": {Max: new(int64(9))},
		"keys": {Keys: keys{"a": maximum(9), "b*": {Mode: new(runtime.ModeShadow)}}},
		"both": {Mode: new(runtime.ModeShadow), Keys: keys{"a": maximum(9)}},
	}}))
	defer limiter.Close()
	for name, keys := range map[string]map[string]bool{
		"rule": {"a": true, "c": true}, "keys": {"a": true, "bb": true, "c": false}, "both": {"a": true, "c": true}, "none": {"a": false},
	} {
		rule := &runtime.Rule{Name: name, Prefix: name + ":", Max: 5, Window: time.Hour}
		for k, want := range keys {
			taken(t, limiter, rule.Limit(key(k)))
			events := seen.all()
			if last := events[len(events)-1]; last.Rule != name || last.Overridden != want {
				t.Errorf("rule %s, key %s: %+v, want overridden %t", name, k, last, want)
			}
		}
	}
}

// Overrides come and go while calls are under way, under the race detector.
func TestOverridesRace(t *testing.T) {
	t.Parallel()
	var turn atomic.Int64
	source := runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
		switch n := turn.Add(1); n % 5 {
		case 0:
			return runtime.Overrides{}, nil
		case 1:
			return runtime.Overrides{Enabled: new(false)}, nil
		case 2:
			return one(runtime.Override{Enabled: new(false)}), nil
		case 3:
			return one(runtime.Override{Max: new(int64(-1))}), nil
		default:
			return one(runtime.Override{Max: new(n), Window: new(time.Duration(n) * time.Millisecond)}), nil
		}
	})
	limiter := inMemory(runtime.WithOverrides(source, time.Millisecond),
		runtime.WithProcessCap(&runtime.Rule{Name: "r", Window: time.Second, Max: 1000, Algorithm: runtime.FixedWindow}))
	rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 10, Algorithm: runtime.TokenBucket, Burst: 5}
	concurrently(4, func(int) {
		for i := int64(0); turn.Load() < 100; i++ {
			limit := rule.Limit(runtime.NewKey().AddInt(i % 7))
			d, err := limiter.Take(context.Background(), limit)
			if err != nil && !errors.Is(err, runtime.ErrLimited) {
				t.Error(err)
			}
			limiter.TakeEach(context.Background(), limit, limit)
			limiter.Refund(context.Background(), d)
		}
	})
	ok(t, limiter.Close())
}
