package runtime_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// codes are those of what a limiter has found, with their rules.
func codes(l *runtime.Limiter) (found []string) {
	for _, f := range l.Findings() {
		found = append(found, strings.TrimSpace(f.Code+" "+f.Rule))
	}
	return found
}

// wantFound wants a limiter to have found certain things, each with a text, a remedy and a time,
// and to have logged each once.
func wantFound(t *testing.T, l *runtime.Limiter, out *lines, want ...string) {
	t.Helper()
	same(t, "findings", want, codes(l))
	for _, f := range l.Findings() {
		if f.Text == "" || f.Help == "" || f.Since.IsZero() {
			t.Errorf("incomplete: %+v", f)
		}
		if n := strings.Count(out.String(), "code="+f.Code+" "); n != 1 {
			t.Errorf("%s was logged %d times:\n%s", f.Code, n, out)
		}
	}
}

// TestFindings declares what does not hold, and wants each to be found. What holds again is
// found no longer.
func TestFindings(t *testing.T) {
	type program struct {
		*testing.T
		out lines
	}
	open := func(p *program, opts ...runtime.Option) *runtime.Limiter {
		l := runtime.New(runtime.NewMemoryStore(), append(opts, p.out.Logger())...)
		p.Cleanup(func() { _ = l.Close() })
		return l
	}
	calls := func(l *runtime.Limiter, n int, limit func(i int) runtime.Limit) {
		for i := range n {
			_, _ = l.Take(context.Background(), limit(i))
		}
	}
	declared := func() *runtime.Rule { return &runtime.Rule{Name: "r", Window: time.Hour, Max: 5} }
	of := func(r *runtime.Rule) func(int) runtime.Limit {
		return func(i int) runtime.Limit { return r.Limit(runtime.NewKey().AddInt(int64(i))) }
	}
	eachCase(t, map[string]func(*program){
		"no store": func(p *program) {
			wantFound(p.T, runtime.New(nil, p.out.Logger()), &p.out, "no_store")
		},
		"no store, and switched off": func(p *program) {
			wantFound(p.T, runtime.New(nil, p.out.Logger(), runtime.WithEnabled(func() bool { return false })), &p.out)
		},
		"replicas in memory": func(p *program) {
			wantFound(p.T, open(p, runtime.WithReplicas(3)), &p.out, "memory_store_replicas")
		},
		"a wrapper that nobody calls": func(p *program) {
			l, r := open(p), declared()
			l.Register(r)
			time.Sleep(59 * time.Second)
			wantFound(p.T, l, &p.out)
			time.Sleep(time.Second)
			synctest.Wait()
			wantFound(p.T, l, &p.out, "limiter_unused")
			taken(p.T, l, r.Limit(nil))
			wantFound(p.T, l, &p.out)
		},
		"a wrapper that is called": func(p *program) {
			l, r := open(p), declared()
			l.Register(r)
			calls(l, 1, func(int) runtime.Limit { return r.Limit(nil).WithCost(0) })
			time.Sleep(time.Hour)
			wantFound(p.T, l, &p.out)
		},
		"a wrapper whose calls are refused, undecided or unavailable": func(p *program) {
			for _, opts := range [][]runtime.Option{{runtime.WithFailurePolicy(runtime.FailOpen)}, {closed}, {runtime.WithFailurePolicy(runtime.FailLocal)}} {
				for _, store := range []runtime.Store{runtime.NewMemoryStore(), broken()} {
					l, r := runtime.New(store, append(opts, p.out.Logger())...), &runtime.Rule{Name: "r", Window: time.Hour}
					l.Register(r)
					calls(l, 1, of(r))
					time.Sleep(2 * time.Minute)
					same(p.T, "findings", nil, codes(l))
				}
			}
		},
		"calls after Close": func(p *program) {
			l, r := open(p), declared()
			d := taken(p.T, l, r.Limit(nil))
			ok(p.T, l.Close())
			refunded(p.T, l, d)
			wantFound(p.T, l, &p.out)
			calls(l, 3, of(r))
			wantFound(p.T, l, &p.out, "limiter_closed")
		},
		"a key for each call": func(p *program) {
			l, r := open(p), declared()
			calls(l, 999, of(r))
			wantFound(p.T, l, &p.out)
			calls(l, 2000, func(i int) runtime.Limit { return of(r)(1000 + i) })
			wantFound(p.T, l, &p.out, "distinct_keys r")
			taken(p.T, l, of(r)(7))
			wantFound(p.T, l, &p.out)
		},
		"a key for each call, over many windows": func(p *program) {
			l, r := open(p), declared()
			for i := range 20 {
				calls(l, 500, func(j int) runtime.Limit { return of(r)(i*500 + j) })
				time.Sleep(r.Window + time.Second)
			}
			wantFound(p.T, l, &p.out)
		},
		"a bucket that is full at once": func(p *program) {
			l, r := open(p), &runtime.Rule{Name: "r", Window: time.Hour, Max: rule.MaxCount, Algorithm: runtime.TokenBucket}
			for i := range 3000 {
				taken(p.T, l, of(r)(i%10))
				time.Sleep(time.Millisecond)
			}
			wantFound(p.T, l, &p.out)
		},
		"a permit for each call": func(p *program) {
			l, r := open(p), &runtime.Rule{Name: "r", Window: time.Minute, Max: 5, Algorithm: runtime.Concurrency}
			for i := range 3000 {
				refunded(p.T, l, taken(p.T, l, of(r)(i)))
			}
			wantFound(p.T, l, &p.out)
		},
		"no keys": func(p *program) {
			l, r := open(p), &runtime.Rule{Name: "r", Window: time.Millisecond, Max: 5}
			for range 3000 {
				taken(p.T, l, r.Limit(nil))
				time.Sleep(time.Second)
			}
			wantFound(p.T, l, &p.out)
		},
		"calls that cost nothing": func(p *program) {
			l, r := open(p), declared()
			calls(l, 2000, func(i int) runtime.Limit { return of(r)(i).WithCost(0) })
			wantFound(p.T, l, &p.out, "nothing_charged r")
			taken(p.T, l, of(r)(7))
			wantFound(p.T, l, &p.out)
		},
		"calls that all come back": func(p *program) {
			l, r := open(p), declared()
			for range 2000 {
				refunded(p.T, l, taken(p.T, l, of(r)(1)))
			}
			wantFound(p.T, l, &p.out, "all_refunded r")
		},
		"half of the calls come back": func(p *program) {
			l, r := open(p), &runtime.Rule{Name: "r", Window: time.Hour, Max: 100_000}
			for range 2000 {
				refunded(p.T, l, taken(p.T, l, of(r)(1)))
				taken(p.T, l, of(r)(1))
			}
			wantFound(p.T, l, &p.out)
		},
		"an empty part": func(p *program) {
			l, r := open(p), declared()
			calls(l, 3, func(int) runtime.Limit { return r.Limit(runtime.NewKey().AddString("")) })
			wantFound(p.T, l, &p.out, "empty_part r")
		},
		"overrides that are rejected, and then not": func(p *program) {
			var b board
			b.set(overridesOf(rule.Override{Max: new(int64(-1))}), nil)
			l := open(p, runtime.WithOverrides(&b, time.Second))
			wantFound(p.T, l, &p.out, "overrides_rejected")
			b.put(overridesOf(rule.Override{Max: new(int64(1))}))
			wantFound(p.T, l, &p.out)
		},
		"overrides that come late": func(p *program) {
			l := open(p, runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
				time.Sleep(300 * time.Millisecond)
				return runtime.Overrides{}, nil
			}), time.Second))
			wantFound(p.T, l, &p.out, "overrides_unread")
			time.Sleep(time.Second)
			synctest.Wait()
			wantFound(p.T, l, &p.out)
		},
		"overrides for keys of another form": func(p *program) {
			var b board
			b.set(overridesOf(rule.Override{Keys: keys{
				"acme": maximum(1), "acme:2001%3Adb8%3A%3A/56": maximum(1), "acme:2001%3Adb8%3A%3A5": maximum(2), "acme:%3A%3Affff%3A1.2.3.4": maximum(3),
				"ac*": maximum(4), "a:b:c*": maximum(5),
			}}), nil)
			l, r := open(p, runtime.WithOverrides(&b, time.Second)), declared()
			taken(p.T, l, r.Limit(runtime.NewKey().AddString("globex").AddString(netip.MustParsePrefix("2001:db8:7::/56").String())))
			time.Sleep(2 * time.Second)
			wantFound(p.T, l, &p.out, "override_keys_unfit r")
			equal(p.T, "which", l.Findings()[0].Detail, "4 of 6")
			b.put(overridesOf(rule.Override{Keys: keys{"acme:2001%3Adb8%3A%3A/56": maximum(1)}}))
			time.Sleep(time.Second)
			wantFound(p.T, l, &p.out)
		},
		"overrides for keys of another form, where all are refused": func(p *program) {
			store, r := runtime.NewMemoryStore(), declared()
			limit := r.Limit(runtime.NewKey().AddString("a")).WithCost(5)
			taken(p.T, runtime.New(store), limit)
			l := runtime.New(store, runtime.WithOverrides(fixed(overridesOf(rule.Override{Keys: keys{"a:b": maximum(1)}})), time.Second), p.out.Logger())
			p.Cleanup(func() { _ = l.Close() })
			_, _ = l.Take(context.Background(), limit)
			time.Sleep(2 * time.Second)
			wantFound(p.T, l, &p.out, "override_keys_unfit r")
		},
		"a rule that is changed": func(p *program) {
			l, r := open(p), declared()
			l.Register(r)
			taken(p.T, l, r.Limit(nil))
			r.Max = 7
			wantFound(p.T, l, &p.out)
			r.Window = time.Minute
			wantFound(p.T, l, &p.out, "rule_changed r")
		},
		"a block in shadow mode": func(p *program) {
			var b board
			l, r := open(p, runtime.WithOverrides(&b, time.Second)), declared()
			r.Mode, r.Block = runtime.ModeSoft, time.Minute
			calls(l, 3, of(r))
			wantFound(p.T, l, &p.out, "idle_block r")
			b.put(overridesOf(rule.Override{Mode: new(runtime.ModeEnforce)}))
			calls(l, 1, of(r))
			wantFound(p.T, l, &p.out)
		},
		"a store that does not answer": func(p *program) {
			l := runtime.New(broken(), p.out.Logger())
			calls(l, 2, of(declared()))
			wantFound(p.T, l, &p.out, "undecided r")
			time.Sleep(time.Minute)
			wantFound(p.T, l, &p.out)
		},
	}, func(t *testing.T, try func(*program)) { try(&program{T: t}) })
}

// TestOptionsThatCannotHold wants a panic, with the option's name, where one that is declared
// could have no effect.
func TestOptionsThatCannotHold(t *testing.T) {
	on := func() bool { return true }
	for name, declare := range map[string]func(){
		"WithEnabled": func() { runtime.New(nil, quiet, runtime.WithEnabled(on), runtime.WithEnabled(on)) },
		"WithProcessCap": func() {
			runtime.New(nil, quiet, runtime.WithProcessCap(perHour(1)), runtime.WithProcessCap(perHour(2)))
		},
		"WithOverrides":   func() { runtime.New(nil, quiet, overridden(runtime.Overrides{}), overridden(runtime.Overrides{})) },
		"WithReplicas":    func() { runtime.WithReplicas(0) },
		"WithRefusals":    func() { runtime.WithRefusals(time.Hour, []byte("")) },
		"WithLocalKeys":   func() { runtime.WithLocalKeys(-3) },
		"WithTimeout":     func() { runtime.WithTimeout(50) },
		"WithMemoryWatch": func() { runtime.WithMemoryWatch(80, time.Minute) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, name) {
					t.Errorf("%s: panicked with %q", name, text)
				}
			}()
			declare()
		}()
	}
}

// TestRulesThatCannotHold wants an error that names the field, where a number of a rule has no
// effect.
func TestRulesThatCannotHold(t *testing.T) {
	for field, r := range map[string]runtime.Rule{
		"burst":      {Burst: 5},
		"buckets":    {Algorithm: runtime.FixedWindow, Buckets: rule.EqualBuckets(6)},
		"storage":    {Algorithm: runtime.FixedWindow, Storage: runtime.StoragePacked},
		"resolution": {Algorithm: runtime.TokenBucket, Resolution: time.Second},
		"wait":       {Wait: 5},
	} {
		r.Name, r.Window, r.Max = "r", time.Hour, 10
		l := inMemory()
		_, err := l.Take(t.Context(), r.Limit(nil))
		wantError(t, field, err, runtime.ErrInvalidLimit)
		if err != nil && !slices.Contains(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == ':' || r == ' ' }), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestTwoStores makes two stores on one client: the second one is told, unless nobody uses the first.
func TestTwoStores(t *testing.T) {
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: "127.0.0.1:1"}))
	defer client.Close()
	open := func(store *runtime.RedisStore) *runtime.Limiter { return runtime.New(store, quiet) }
	store := runtime.NewRedisStore(client)
	first, also := open(store), open(store)
	same(t, "one store", nil, append(codes(first), codes(also)...))
	second := open(runtime.NewRedisStore(client))
	same(t, "two stores", []string{"two_stores"}, codes(second))
	ok(t, errors.Join(first.Close(), also.Close()))
	third := open(runtime.NewRedisStore(client))
	same(t, "the first is not used", nil, codes(third))
}

// TestManyLimiters makes a limiter for each request: on one store, and on stores of their own. All
// limiters are told, as long as there are more.
func TestManyLimiters(t *testing.T) {
	for about, own := range map[string]bool{"many_limiters": false, "many_limiters r": true} {
		synctest.Test(t, func(t *testing.T) {
			var out lines
			store, r := runtime.NewMemoryStore(), &runtime.Rule{Name: "r", Window: time.Hour, Max: 5}
			var last *runtime.Limiter
			for i := range 150 {
				if own {
					store = runtime.NewMemoryStore()
				}
				last = runtime.New(store, out.Logger())
				last.Register(r, r)
				taken(t, last, r.Limit(runtime.NewKey().AddInt(int64(i))))
				if found := slices.Contains(codes(last), about); found != (i >= 99) {
					t.Fatal(about, i, found)
				}
			}
			if n := strings.Count(out.String(), "code=many_limiters"); n != 1 {
				t.Errorf("told %d times", n)
			}
			time.Sleep(time.Minute)
			same(t, "findings", nil, codes(last))
		})
	}
}
