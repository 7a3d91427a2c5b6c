package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A board is an override source that tests write on.
type board struct {
	mu  sync.Mutex
	now runtime.Overrides
	err error
}

func (b *board) Overrides(context.Context) (runtime.Overrides, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now, b.err
}

func (b *board) set(o runtime.Overrides, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now, b.err = o, err
}

// lines is a log that may be read while it is written.
type lines struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

func (l *lines) logger() runtime.Option {
	return runtime.WithLogger(slog.New(slog.NewTextHandler(l, nil)))
}

// A recorder keeps the events that it is told.
type recorder[E any] struct {
	mu   sync.Mutex
	told []E
}

func (r *recorder[E]) add(ev E) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, ev)
}

func (r *recorder[E]) all() []E {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

// one overrides the rule named r.
func one(of runtime.Override) runtime.Overrides {
	return runtime.Overrides{Rules: map[string]runtime.Override{"r": of}}
}

// passing returns how many of n calls are admitted.
func passing(t *testing.T, limiter *runtime.Limiter, limit runtime.Limit, n int) int {
	t.Helper()
	got := 0
	for range n {
		_, err := limiter.Take(context.Background(), limit)
		if err == nil {
			got++
		} else if !errors.Is(err, runtime.ErrLimited) {
			t.Fatal(err)
		}
	}
	return got
}

// What is changed in each field holds for the calls after the next look, and
// what was declared holds again when it is taken back.
func TestOverrides(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		to   runtime.Overrides
		max  int64 // of the call, 0: the rule's
		want int   // of 10 calls, where 4 are declared
	}{
		{"nothing", runtime.Overrides{}, 0, 4},
		{"another rule", runtime.Overrides{Rules: map[string]runtime.Override{"other": {Max: new(int64(9))}}}, 0, 4},
		{"max raised", one(runtime.Override{Max: new(int64(6))}), 0, 6},
		{"max lowered", one(runtime.Override{Max: new(int64(2))}), 0, 2},
		{"max 0", one(runtime.Override{Max: new(int64(0))}), 0, 0},
		{"max of the call's own", one(runtime.Override{Max: new(int64(6))}), 3, 6},
		{"a max of the call's own that makes no sense", one(runtime.Override{Max: new(int64(6))}), -3, 6},
		{"window, and a max of the call's own", one(runtime.Override{Window: new(time.Minute)}), 3, 3},
		{"shadow", one(runtime.Override{Mode: new(runtime.Shadow)}), 0, 10},
		{"off", one(runtime.Override{Enabled: new(false)}), 0, 10},
		{"off, of a call that makes no sense", one(runtime.Override{Enabled: new(false)}), -3, 10},
		{"on", one(runtime.Override{Enabled: new(true)}), 0, 4},
		{"all off", runtime.Overrides{Enabled: new(false)}, 0, 10},
		{"all on", runtime.Overrides{Enabled: new(true)}, 0, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4}
				source := new(board)
				limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(source, time.Second))
				defer limiter.Close()
				limit := func(id string) runtime.Limit {
					l := rule.Limit(key(id))
					if test.max != 0 {
						l = l.WithMax(test.max)
					}
					return l
				}
				if got := passing(t, limiter, rule.Limit(key("before")), 10); got != 4 {
					t.Errorf("before: %d admitted, want 4", got)
				}
				source.set(test.to, nil)
				time.Sleep(time.Second)
				synctest.Wait()
				if got := passing(t, limiter, limit("during"), 10); got != test.want {
					t.Errorf("%d admitted, want %d", got, test.want)
				}
				if got, want := limiter.Enabled(), test.name != "all off"; got != want {
					t.Errorf("enabled: %t, want %t", got, want)
				}
				source.set(runtime.Overrides{}, nil)
				time.Sleep(time.Second)
				synctest.Wait()
				if got := passing(t, limiter, rule.Limit(key("after")), 10); got != 4 {
					t.Errorf("after: %d admitted, want 4", got)
				}
			})
		})
	}
}

// The counts that there are go on to count.
func TestOverrideKeepsCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4}
		source := new(board)
		limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(source, time.Second))
		defer limiter.Close()
		limit := rule.Limit(key("k"))
		for _, step := range []struct {
			name string
			of   runtime.Override
			want int
		}{
			{"declared", runtime.Override{}, 4},
			{"raised by 2", runtime.Override{Max: new(int64(6))}, 2},
			{"lowered below what is counted", runtime.Override{Max: new(int64(3))}, 0},
			{"off", runtime.Override{Enabled: new(false)}, 10},
			{"on again: nothing was counted meanwhile", runtime.Override{Max: new(int64(7))}, 1},
			{"a window that only the last call is in", runtime.Override{Window: new(3 * time.Second)}, 3},
		} {
			source.set(one(step.of), nil)
			time.Sleep(time.Second)
			synctest.Wait()
			if got := passing(t, limiter, limit, 10); got != step.want {
				t.Errorf("%s: %d admitted, want %d", step.name, got, step.want)
			}
			if step.name != "lowered below what is counted" {
				continue
			}
			if d, err := limiter.Peek(context.Background(), limit); err != nil || d.Remaining != 0 || d.Limit != 3 {
				t.Errorf("%s: peek %+v, %v", step.name, d, err)
			}
		}
	})
}

// Nonsense is refused as a whole, whatever else is said beside it, and told.
func TestOverridesRefused(t *testing.T) {
	t.Parallel()
	declared := []*runtime.Rule{
		{Name: "log", Prefix: "log:", Window: time.Hour, Max: 5},
		{Name: "sliced", Prefix: "sliced:", Window: time.Hour, Max: 5, Resolution: time.Minute},
	}
	for _, test := range []struct {
		name  string
		rule  string
		of    runtime.Override
		err   error
		wants string
	}{
		{"negative max", "any", runtime.Override{Max: new(int64(-1))}, nil, `override of rule "any": max -1 is not between 0 and 1000000000000`},
		{"huge max", "any", runtime.Override{Max: new(int64(runtime.MaxCount + 1))}, nil, `is not between 0 and`},
		{"no window", "any", runtime.Override{Window: new(time.Duration(0))}, nil, `window 0s is not between 1ms and 366 days`},
		{"long window", "any", runtime.Override{Window: new(runtime.MaxWindow + 1)}, nil, `is not between 1ms and 366 days`},
		{"mode", "any", runtime.Override{Mode: new(runtime.Mode(7))}, nil, `unknown mode 7`},
		{"log max", "log", runtime.Override{Max: new(int64(runtime.MaxLog + 1))}, nil, `rule "log": max 1000001 is above 1000000`},
		{"window below the resolution", "sliced", runtime.Override{Window: new(time.Second)}, nil, `rule "sliced": resolution: 1m0s is longer than the window of 1s`},
		{"invalid", "log", runtime.Override{}, fmt.Errorf("line 7: %w", runtime.ErrInvalidOverrides), "line 7"},
		{"unread", "log", runtime.Override{}, errors.New("no such file"), "no such file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out lines
				var told recorder[runtime.OverrideEvent]
				source := new(board)
				good := runtime.Overrides{Rules: map[string]runtime.Override{"log": {Max: new(int64(2))}}}
				source.set(good, nil)
				limiter := runtime.New(runtime.NewMemoryStore(), out.logger(), runtime.WithOverrides(source, time.Second),
					runtime.WithObserver(&runtime.Observer{Override: told.add}))
				defer limiter.Close()
				for _, rule := range declared {
					passing(t, limiter, rule.Limit(nil), 1)
				}
				bad := runtime.Overrides{Enabled: new(false), Rules: map[string]runtime.Override{"log": {Max: new(int64(4))}}}
				bad.Rules[test.rule] = test.of
				source.set(bad, test.err)
				time.Sleep(30 * time.Second)
				synctest.Wait()
				if !limiter.Enabled() || passing(t, limiter, declared[0].Limit(key("k")), 10) != 2 {
					t.Error("the last good overrides are not in force")
				}
				rejected, what := test.name != "unread", "rejected"
				if !rejected {
					what = "cannot be read"
				}
				if n := strings.Count(out.String(), "overrides of rate limits "+what+", the last good ones stay in force"); n != 1 {
					t.Errorf("reported %d times in half a minute, want once:\n%s", n, out.String())
				}
				if events := told.all(); len(events) != 2 || events[1].Err == nil || errors.Is(events[1].Err, runtime.ErrInvalidOverrides) != rejected || !strings.Contains(causes(events[1].Err), test.wants) || events[1].Rules != 1 || !events[1].Enabled {
					t.Errorf("observed %+v, want an error with %q", events, test.wants)
				}
				time.Sleep(complainAgain)
				synctest.Wait()
				if events := told.all(); len(events) != 3 {
					t.Errorf("%d events after another minute, want 3", len(events))
				}
				source.set(good, nil)
				time.Sleep(time.Second)
				synctest.Wait()
				if events := told.all(); len(events) != 4 || events[3] != (runtime.OverrideEvent{Rules: 1, Enabled: true}) {
					t.Errorf("nobody is told that all is well: %+v", events)
				}
			})
		})
	}
}

const complainAgain = time.Minute

// A rule that is met only later and that its override does not fit stays as it
// was declared, and that is told once.
func TestOverrideOfRuleMetLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Int64
		source := new(board)
		bad, fine := runtime.Override{Max: new(int64(runtime.MaxLog + 1))}, runtime.Override{Max: new(int64(3))}
		source.set(runtime.Overrides{Rules: map[string]runtime.Override{"late": bad, "fine": fine}}, nil)
		limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(source, time.Second),
			runtime.WithObserver(&runtime.Observer{Override: func(ev runtime.OverrideEvent) {
				if ev.Err != nil {
					refused.Add(1)
				}
			}}))
		defer limiter.Close()
		late := &runtime.Rule{Name: "late", Prefix: "late:", Window: time.Hour, Max: 5}
		other := &runtime.Rule{Name: "fine", Prefix: "fine:", Window: time.Hour, Max: 5}
		var calls sync.WaitGroup
		for range 10 {
			calls.Go(func() { limiter.Take(context.Background(), late.Limit(nil), other.Limit(nil)) })
		}
		calls.Wait()
		for i, rule := range []*runtime.Rule{late, other} {
			if got, want := passing(t, limiter, rule.Limit(key("k")), 10), []int{5, 3}[i]; got != want {
				t.Errorf("rule %s: %d admitted, want %d", rule.Name, got, want)
			}
		}
		// What is new beside it is taken over all the same.
		source.set(runtime.Overrides{Rules: map[string]runtime.Override{"late": bad, "fine": {Max: new(int64(4))}}}, nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := passing(t, limiter, other.Limit(key("l")), 10); got != 4 {
			t.Errorf("%d admitted, want 4", got)
		}
		if n := refused.Load(); n != 1 {
			t.Errorf("told %d times, want once", n)
		}
	})
}

// A name that nobody calls is most likely misspelt.
func TestOverrideOfUnknownName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out lines
		source := new(board)
		source.set(runtime.Overrides{Rules: map[string]runtime.Override{"met": {}, "mett": {}}}, nil)
		limiter := runtime.New(runtime.NewMemoryStore(), out.logger(), runtime.WithOverrides(source, time.Second))
		defer limiter.Close()
		passing(t, limiter, (&runtime.Rule{Name: "met", Window: time.Hour, Max: 5}).Limit(nil), 1)
		const warning = `level=WARN msg="overrides name rules that no call has used: check the names" unmet=1 rules=[mett]`
		time.Sleep(50 * time.Second)
		if strings.Contains(out.String(), "overrides name rules that no call has used") {
			t.Errorf("warned too early:\n%s", out.String())
		}
		source.set(runtime.Overrides{Rules: map[string]runtime.Override{"met": {}, "mett": {Max: new(int64(1))}}}, nil)
		time.Sleep(time.Hour)
		if n := strings.Count(out.String(), "overrides name rules that no call has used"); n != 1 || !strings.Contains(out.String(), warning) {
			t.Errorf("warned %d times, want once:\n%s", n, out.String())
		}
	})
}

// A line in the log stays short, whatever the names are.
func TestOverridesLogIsShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out lines
		source, long := new(board), runtime.Overrides{Rules: map[string]runtime.Override{}}
		for i := range 100 {
			long.Rules[fmt.Sprint(i, strings.Repeat("x", 10_000))] = runtime.Override{}
		}
		source.set(long, nil)
		limiter := runtime.New(runtime.NewMemoryStore(), out.logger(), runtime.WithOverrides(source, time.Second))
		defer limiter.Close()
		time.Sleep(2 * time.Minute)
		long.Rules = maps.Clone(long.Rules) // the other is the limiter's to read
		long.Rules[strings.Repeat("x", 10_000)] = runtime.Override{Max: new(int64(-1))}
		source.set(long, nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := strings.Count(out.String(), "\n"); n != 3 || len(out.String()) > n*1500 {
			t.Errorf("%d lines of %d bytes", n, len(out.String()))
		}
	})
}

// A program that makes new rules all the time is served, and not all of them
// are kept in mind.
func TestOverridesOfManyRules(t *testing.T) {
	t.Parallel()
	source := new(board)
	source.set(one(runtime.Override{Max: new(int64(1))}), nil)
	limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(source, time.Hour))
	defer limiter.Close()
	for i := range int64(10_500) {
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 5, Algorithm: runtime.FixedWindow}
		if d, err := limiter.Take(context.Background(), rule.Limit(runtime.NewKey().AddInt(i))); err != nil || d.Limit != 1 {
			t.Fatalf("rule %d: got %+v, %v", i, d, err)
		}
	}
	if n := limiter.KnownRules(); n != 10_000 {
		t.Errorf("%d rules are kept in mind, want 10000", n)
	}
}

// A source may change what it has handed out, in its next call.
func TestOverridesAreCopied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		most, turn, maxes := new(int64(0)), 0, []int64{2, 3, -5, -6, 4}
		rules := map[string]runtime.Override{"r": {Max: most}}
		limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			*most = maxes[turn]
			turn++
			return runtime.Overrides{Rules: rules}, nil
		}), time.Second))
		defer limiter.Close()
		for i, want := range []int{2, 3, 3, 3, 4} {
			// A rule that is met for the first time takes its override as it was.
			rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 5}
			if got := passing(t, limiter, rule.Limit(runtime.NewKey().AddInt(int64(i))), 10); got != want {
				t.Errorf("turn %d: %d admitted, want %d", i, got, want)
			}
			if i < 4 {
				time.Sleep(time.Second)
				synctest.Wait()
			}
		}
	})
}

func TestOverrideSourcePanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var panics, refused atomic.Int64
		var looks atomic.Int64
		limiter := runtime.New(runtime.NewMemoryStore(), quiet,
			runtime.WithObserver(&runtime.Observer{
				Panic: func(ev runtime.PanicEvent) {
					if ev.In == "override source" {
						panics.Add(1)
					}
				},
				Override: func(runtime.OverrideEvent) { refused.Add(1) },
			}),
			runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
				if looks.Add(1) == 3 {
					return one(runtime.Override{Max: new(int64(1))}), nil
				}
				panic("out of ideas")
			}), time.Second))
		defer limiter.Close()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := passing(t, limiter, (&runtime.Rule{Name: "r", Window: time.Hour, Max: 5}).Limit(nil), 10); got != 1 {
			t.Errorf("%d admitted, want 1", got)
		}
		if panics.Load() != 3 || refused.Load() != 3 {
			t.Errorf("told of %d panics and %d overrides", panics.Load(), refused.Load())
		}
	})
}

// A source that goes on after its context is told of while it does, and again when it
// has answered after all.
func TestOverrideSourceLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told recorder[runtime.OverrideEvent]
		first := true
		source := runtime.OverrideFunc(func(ctx context.Context) (runtime.Overrides, error) {
			if !first {
				return runtime.Overrides{}, nil
			}
			first = false
			time.Sleep(10 * time.Second)
			return runtime.Overrides{}, nil
		})
		limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(source, time.Second),
			runtime.WithObserver(&runtime.Observer{Override: told.add}))
		defer limiter.Close()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if events := told.all(); len(events) != 2 || events[0].Err == nil || errors.Is(events[0].Err, runtime.ErrInvalidOverrides) || events[1].Err != nil {
			t.Errorf("observed %+v, want that it hangs, and that it is over", events)
		}
	})
}

// A source that hangs keeps neither New nor Close for long, if it heeds its
// context, and Close says so if it does not.
func TestOverrideSourceHangs(t *testing.T) {
	t.Parallel()
	for name, heeds := range map[string]bool{"heeds its context": true, "does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var refused atomic.Int64
				release := make(chan struct{})
				source := runtime.OverrideFunc(func(ctx context.Context) (runtime.Overrides, error) {
					if heeds {
						<-ctx.Done()
						return runtime.Overrides{}, ctx.Err()
					}
					<-release
					return runtime.Overrides{Enabled: new(false)}, nil
				})
				begin := time.Now()
				limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(source, time.Second),
					runtime.WithObserver(&runtime.Observer{Override: func(ev runtime.OverrideEvent) {
						if ev.Err != nil && !errors.Is(ev.Err, runtime.ErrInvalidOverrides) {
							refused.Add(1)
						}
					}}))
				if took := time.Since(begin); took != 100*time.Millisecond {
					t.Errorf("New took %v", took)
				}
				time.Sleep(30 * time.Second)
				if n := refused.Load(); n != 1 {
					t.Errorf("told %d times, want once", n)
				}
				begin = time.Now()
				if err := limiter.Close(); (err == nil) != heeds {
					t.Errorf("close: %v", err)
				}
				if took := time.Since(begin); took > time.Second {
					t.Errorf("Close took %v", took)
				}
				close(release)
				if err := limiter.Close(); err != nil {
					t.Errorf("close again: %v", err)
				}
				if !limiter.Enabled() {
					t.Error("overrides came into force after Close")
				}
			})
		})
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64
	followed := runtime.New(nil, quiet, runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
		looks.Add(1)
		return runtime.Overrides{Enabled: new(false)}, nil
	}), time.Hour))
	if followed.Enabled() || looks.Load() != 1 {
		t.Error("New has returned before the first overrides")
	}
	for _, limiter := range []*runtime.Limiter{runtime.New(nil), followed, runtime.New(nil, runtime.WithOverrides(nil, 0), quiet)} {
		var closing sync.WaitGroup
		for range 3 {
			closing.Go(func() {
				if err := limiter.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		closing.Wait()
	}
	if followed.Enabled() {
		t.Error("the overrides are gone with Close")
	}
}

// A charge is given back to where it was made, whatever became of its rule.
func TestRefundAfterOverride(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]runtime.Override{
		"off":      {Enabled: new(false)},
		"max 0":    {Max: new(int64(0))},
		"max 1":    {Max: new(int64(1))},
		"shadow":   {Mode: new(runtime.Shadow), Max: new(int64(1))},
		"window":   {Window: new(2 * time.Hour)},
		"as it is": {},
	} {
		for _, algorithm := range []runtime.Algorithm{runtime.SlidingLog, runtime.SlidingCounter, runtime.FixedWindow, runtime.TokenBucket, runtime.LeakyBucket} {
			t.Run(fmt.Sprint(name, " ", algorithm), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx := context.Background()
					rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4, Algorithm: algorithm}
					source := new(board)
					limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(source, time.Second))
					defer limiter.Close()
					limit := rule.Limit(key("k")).WithCost(4)
					d, err := limiter.Take(ctx, limit)
					if err != nil {
						t.Fatal(err)
					}
					source.set(one(of), nil)
					time.Sleep(time.Second)
					synctest.Wait()
					if err := limiter.Refund(ctx, d, limit); err != nil {
						t.Fatal(err)
					}
					source.set(runtime.Overrides{}, nil)
					time.Sleep(time.Second)
					synctest.Wait()
					if d, err := limiter.Peek(ctx, limit); err != nil || d.Remaining != 4 {
						t.Errorf("got %+v, %v", d, err)
					}
				})
			})
		}
	}
}

// A reset finds the key that an overridden rule counts under.
func TestResetAfterOverride(t *testing.T) {
	t.Parallel()
	source := new(board)
	source.set(one(runtime.Override{Window: new(2 * time.Hour)}), nil)
	limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(source, time.Hour))
	defer limiter.Close()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 3, Algorithm: runtime.SlidingCounter, Buckets: runtime.LayeredBuckets(6, 10)}
	for range 2 {
		if got := passing(t, limiter, rule.Limit(nil), 5); got != 3 {
			t.Errorf("%d admitted, want 3", got)
		}
		if err := limiter.Reset(context.Background(), rule.Limit(nil)); err != nil {
			t.Error(err)
		}
	}
}

// The lines about one rule stay a line a second, however often it is changed.
func TestLogOfOverriddenRule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out lines
		source := new(board)
		limiter := runtime.New(runtime.NewMemoryStore(), out.logger(), runtime.WithOverrides(source, 10*time.Millisecond))
		defer limiter.Close()
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1}
		for i := range 100 {
			source.set(one(runtime.Override{Max: new(int64(1 + i%2))}), nil)
			passing(t, limiter, rule.Limit(nil), 3)
			time.Sleep(10 * time.Millisecond)
		}
		if n := strings.Count(out.String(), "call over its rate limit"); n != 1 {
			t.Errorf("%d lines about denials in a second, want 1", n)
		}
	})
}

// On Redis a raised max is seen at once, though denials are remembered, and a
// denial by another rule stays free.
func TestOverrideOnRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	ctx := context.Background()
	taken := make(chan struct{}, 100)
	source := new(board)
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second), runtime.WithDenialMemory(time.Hour)), quiet,
		runtime.WithOverrides(source, 5*time.Millisecond),
		runtime.WithObserver(&runtime.Observer{Override: func(ev runtime.OverrideEvent) {
			if ev.Err != nil {
				t.Error(ev.Err)
			}
			taken <- struct{}{}
		}}))
	defer limiter.Close()
	rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: 2}
	other := &runtime.Rule{Name: "o", Prefix: "o:", Window: time.Hour, Max: 2}
	change := func(o runtime.Overrides) {
		t.Helper()
		source.set(o, nil)
		select {
		case <-taken:
		case <-time.After(30 * time.Second):
			t.Fatal("overrides do not come into force")
		}
	}
	for _, r := range []*runtime.Rule{rule, other} {
		if got := passing(t, limiter, r.Limit(nil), 5); got != 2 {
			t.Fatalf("%d admitted, want 2", got)
		}
	}
	for _, step := range []struct {
		name string
		of   runtime.Override
		want int
	}{
		{"raised", runtime.Override{Max: new(int64(5))}, 3},
		{"raised again", runtime.Override{Max: new(int64(6))}, 1},
		{"lowered", runtime.Override{Max: new(int64(3))}, 0},
		{"shadow", runtime.Override{Mode: new(runtime.Shadow)}, 10},
		{"longer", runtime.Override{Max: new(int64(7)), Window: new(2 * time.Hour)}, 1},
		{"shorter", runtime.Override{Window: new(time.Millisecond)}, 10},
	} {
		change(one(step.of))
		got := 0
		for range 10 {
			if step.name == "shorter" {
				time.Sleep(2 * time.Millisecond) // the window, by Redis's clock
			}
			got += passing(t, limiter, rule.Limit(nil), 1)
		}
		if got != step.want {
			t.Errorf("%s: %d admitted, want %d", step.name, got, step.want)
		}
		d, err := limiter.Take(ctx, other.Limit(nil))
		if !errors.Is(err, runtime.ErrLimited) || d.Source != runtime.SourceRecalled {
			t.Errorf("%s: the other rule got %+v, %v", step.name, d, err)
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
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithOverrides(source, time.Millisecond),
		runtime.WithProcessCap(&runtime.Rule{Name: "r", Window: time.Second, Max: 1000, Algorithm: runtime.FixedWindow}))
	rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 10, Algorithm: runtime.TokenBucket, Burst: 5}
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for i := int64(0); turn.Load() < 100; i++ {
				limit := rule.Limit(runtime.NewKey().AddInt(i % 7))
				d, err := limiter.Take(context.Background(), limit)
				if err != nil && !errors.Is(err, runtime.ErrLimited) {
					t.Error(err)
				}
				limiter.TakeEach(context.Background(), limit, limit)
				limiter.Refund(context.Background(), d, limit)
			}
		})
	}
	calls.Wait()
	if err := limiter.Close(); err != nil {
		t.Error(err)
	}
}

// An override that switches a rule off is most easily a function.
func ExampleWithOverrides() {
	exports := &runtime.Rule{Name: "export", Prefix: "export:", Window: time.Hour, Max: 10}
	limiter := runtime.New(runtime.NewMemoryStore(), quiet,
		runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			return runtime.Overrides{Rules: map[string]runtime.Override{
				"export": {Max: new(int64(20))}, // from wherever the program's settings are
			}}, nil
		}), 0))
	defer limiter.Close()

	decision, err := limiter.Take(context.Background(), exports.Limit(nil))
	fmt.Println(decision.Limit, decision.Remaining, err)
	// Output: 20 19 <nil>
}
