package ratepage

import (
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// TestHistory changes overrides of all kinds and reads what the page says of them.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var overrides atomic.Pointer[runtime.Overrides]
		var failure atomic.Pointer[error]
		overrides.Store(new(runtime.Overrides))
		page := New()
		limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(quiet), runtime.WithObserver(page.Observer()),
			runtime.WithOverrides(runtime.OverrideFunc(func(ctx) (runtime.Overrides, error) {
				if err := failure.Load(); err != nil {
					return runtime.Overrides{}, *err
				}
				return *overrides.Load(), nil
			}), time.Second))
		defer func() { _ = limiter.Close() }()
		var rules []*runtime.Rule
		for i := range 30 {
			rules = append(rules, &runtime.Rule{Name: fmt.Sprintf("r%02d", i), Max: 5, Window: 48 * time.Hour})
		}
		limiter.Register(rules...)
		var seen int
		check := func(what string, set func(o *runtime.Overrides), want ...string) {
			t.Helper()
			o := new(runtime.Overrides)
			o.Rules = make(map[string]rule.Override)
			set(o)
			overrides.Store(o)
			time.Sleep(2 * time.Second)
			history := page.history.view()
			var got []string
			for _, e := range history[:len(history)-seen] {
				if e.Unread {
					e.Note = "unread:"
				}
				text := strings.TrimSpace(strings.Join([]string{e.Rule, e.Before, ">", e.After, e.Note, e.Error}, " "))
				got = append(got, strings.Join(strings.Fields(text), " "))
			}
			seen = len(history)
			limittest.Same(t, what, want, got)
		}
		time.Sleep(500 * time.Millisecond) // or a change is made while the source is asked
		check("nothing", func(*runtime.Overrides) {})
		check("a max", func(o *runtime.Overrides) { o.Rules["r01"] = rule.Override{Max: new(int64(7))} }, "r01 > 7 per 2d")
		check("another mode and a window", func(o *runtime.Overrides) {
			o.Rules["r01"] = rule.Override{Max: new(int64(7)), Mode: new(runtime.ModeShadow), Window: new(90 * time.Minute)}
		}, "r01 7 per 2d > 7 per 1h30m, shadow")
		check("keys, and nothing for the rule", func(o *runtime.Overrides) {
			o.Rules["r01"] = rule.Override{Keys: map[string]rule.KeyOverride{"a": {Max: new(int64(0))}, "b": {Max: new(int64(0))}}}
		}, "r01 7 per 1h30m, shadow > 2 keys or patterns overridden")
		check("off", func(o *runtime.Overrides) { o.Rules["r02"] = rule.Override{Enabled: new(false)} },
			"r01 2 keys or patterns overridden >", "r02 > off")
		check("as declared, by an override", func(o *runtime.Overrides) { o.Rules["r02"] = rule.Override{Max: new(int64(5))} },
			"r02 off > overridden by what is declared")
		check("all off", func(o *runtime.Overrides) { o.Enabled = new(false) }, "r02 overridden by what is declared >", "> all limits are switched off")
		check("on again", func(*runtime.Overrides) {}, "> no rule is overridden")
		check("a max that does not fit", func(o *runtime.Overrides) { o.Rules["r01"] = rule.Override{Max: new(int64(-1))} },
			`> override of rule "r01": max -1 is not between 0 and 9007199254740991`)
		failure.Store(new(error(&fs.PathError{Op: "stat", Path: "<b>limits</b>", Err: fs.ErrNotExist})))
		check("a source that fails", func(*runtime.Overrides) {}, "> unread: stat <b>limits</b>: file does not exist")
		failure.Store(nil)
		check("the source again", func(*runtime.Overrides) {}, "> overrides are read again; they are as they were")
		page.history.overridden(observe.OverrideEvent{Enabled: true}, page.rules(), time.Now()) // of another limiter
		check("what is no change", func(*runtime.Overrides) {})
		var many []string
		for _, r := range rules[:maxChanges] {
			many = append(many, r.Name+" > 9 per 2d")
		}
		check("many", func(o *runtime.Overrides) {
			for _, r := range rules {
				o.Rules[r.Name] = rule.Override{Max: new(int64(9))}
			}
		}, append(many, "> and 10 other rules")...)
		for range 2 * maxHistory {
			page.history.add(historyEntry{Note: "x"})
		}
		if n := len(page.history.view()); n != maxHistory {
			t.Errorf("%d entries, want %d", n, maxHistory)
		}
	})
}

// TestRedisWatch reads what the page says of a store from its events.
func TestRedisWatch(t *testing.T) {
	t.Parallel()
	page := New()
	o := page.Observer()
	for i := range 2 * maxNodes {
		o.Breaker(observe.BreakerEvent{Node: fmt.Sprintf("node-%04d", i), Open: true})
	}
	o.Breaker(observe.BreakerEvent{Node: "node-0000"})
	o.Memory(observe.MemoryEvent{Used: 90, Max: 100, High: true})
	for range 3 {
		o.Failure(t.Context(), observe.FailureEvent{Rule: "r", Class: observe.ClassTimeout, Policy: runtime.FailOpen})
	}
	o.Failure(t.Context(), observe.FailureEvent{Rule: "r", Class: observe.ClassOOM, Settling: true})
	v := page.redis.view()
	if len(v.Breakers) != maxNodes || v.Breakers[0].Open || !v.Breakers[1].Open {
		t.Errorf("%d breakers, %+v", len(v.Breakers), v.Breakers[:2])
	}
	if v.Memory == nil || v.Memory.Used != 90 || v.Memory.Max != 100 || !v.Memory.High {
		t.Errorf("memory %+v", v.Memory)
	}
	var failures []string
	for _, f := range v.Failures {
		failures = append(failures, fmt.Sprint(f.Class, " ", f.Policy, " ", f.Count))
	}
	if diff := cmp.Diff([]string{"oom settling 1", "timeout open 3"}, failures); diff != "" {
		t.Error(diff)
	}
}
