package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// blockingRules are the serverRules that may have a block.
func blockingRules(window time.Duration, max int64) map[string]*runtime.Rule {
	rules := serverRules(window, max)
	maps.DeleteFunc(rules, func(_ string, r *runtime.Rule) bool { return r.Algorithm == runtime.Concurrency })
	return rules
}

// blockedBy returns the denial of a call that a block denies.
func blockedBy(t *testing.T, limiter *runtime.Limiter, limits ...runtime.Limit) *runtime.LimitedError {
	t.Helper()
	d, err := limiter.Take(context.Background(), limits...)
	var limited *runtime.LimitedError
	if !errors.As(err, &limited) || !limited.Blocked || limited.Remaining != 0 || limited.RetryAfter <= 0 ||
		!d.Blocked || d.Allowed || d.Remaining != 0 || d.RetryAfter != limited.RetryAfter || d.ResetAfter < d.RetryAfter {
		t.Fatalf("%s: got %+v, %+v, want a denial by a block", d.Rule, d, err)
	}
	return limited
}

// TestBlock wants a denial by one replica to block the caller on all, whatever the
// cost of the next tries, until the key is reset by one.
func TestBlock(t *testing.T) {
	t.Parallel()
	server, ctx := redistest.Start(t), context.Background()
	memory := runtime.NewMemoryStore()
	replicas := map[string]func() runtime.Store{
		"redis":  func() runtime.Store { return runtime.NewRedisStore(server.Client(t), patient) },
		"memory": func() runtime.Store { return memory },
	}
	for kind, replica := range replicas {
		for name, rule := range blockingRules(10*time.Hour, 10) {
			t.Run(kind+" "+name, func(t *testing.T) {
				rule.Block = time.Hour
				one, other := runtime.New(replica(), quiet, closed), runtime.New(replica(), quiet, closed)
				limit := rule.Limit(key("k"))
				taken(t, one, limit.WithCost(8))
				_, err := one.Take(ctx, limit.WithCost(11))
				var limited *runtime.LimitedError
				if !errors.As(err, &limited) || !errors.Is(err, runtime.ErrCostExceedsLimit) || limited.Blocked {
					t.Fatalf("a cost that never fits: got %+v", err)
				}
				if d, err := one.Peek(ctx, limit.WithCost(5)); err != nil || d.Allowed || d.Blocked || d.Remaining != 2 {
					t.Errorf("a peek begins a block: got %+v, %v", d, err)
				}
				taken(t, other, limit)
				if first := blockedBy(t, one, limit.WithCost(5)); first.RetryAfter < rule.Block {
					t.Errorf("retry after %v, want at least the block", first.RetryAfter)
				}
				last := rule.Block
				for range 3 {
					for _, limiter := range []*runtime.Limiter{other, one} {
						rest := blockedBy(t, limiter, limit).RetryAfter
						if rest > last || rest < last-time.Minute {
							t.Errorf("retry after %v, and %v before", rest, last)
						}
						if last = rest + time.Second; last > rule.Block { // a denial from memory is a trip older
							last = rule.Block
						}
					}
				}
				if d, err := other.Peek(ctx, limit); err != nil || !d.Blocked || d.Allowed || d.RetryAfter > rule.Block {
					t.Errorf("peek: got %+v, %v, want the block", d, err)
				}
				for _, o := range other.TakeEach(ctx, limit, rule.Limit(key("another"))) {
					if blocked := o.Err != nil; blocked != o.Blocked || blocked != (o.RetryAfter > 0) {
						t.Errorf("each: got %+v", o)
					}
				}
				ok(t, one.Reset(ctx, limit))
				if _, err := one.Take(ctx, limit.WithCost(10)); err != nil {
					t.Errorf("after a reset: %v", err)
				}
			})
		}
	}
}

// TestBlockIsMet wants a replica that remembers a denial of its own to learn of the
// block, and to tell its callers the rest of it from memory.
func TestBlockIsMet(t *testing.T) {
	t.Parallel()
	server, ctx := redistest.Start(t), context.Background()
	store := func() *runtime.RedisStore { return runtime.NewRedisStore(server.Client(t), patient) }
	one, other := runtime.New(store(), quiet, closed), runtime.New(store(), quiet, closed)
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Block: 2 * time.Hour}
	limit := rule.Limit(key("k"))
	taken(t, one, limit)
	begun := blockedBy(t, one, limit)
	for i, source := range []runtime.Source{runtime.SourceStore, runtime.SourceRecalled, runtime.SourceRecalled} {
		d, err := other.Take(ctx, limit)
		if err == nil || !d.Blocked || d.Source != source || d.RetryAfter > begun.RetryAfter || d.RetryAfter < begun.RetryAfter-time.Minute {
			t.Errorf("try %d: got %+v, %v, want the block from %v", i, d, err, source)
		}
	}
	server.Kill() // no longer there to say so, a caller still is blocked
	for range 3 {
		blockedBy(t, other, limit)
	}
}

// TestBlockEnds wants what was counted before a block to count when it is over, be
// that within the window or after it.
func TestBlockEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		limiter := inMemory()
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 2, Block: 10 * time.Minute}
		limit := rule.Limit(key("k"))
		for range 2 {
			taken(t, limiter, limit)
		}
		for i := range 6 { // the window has room again with the last one's end
			want := time.Hour - time.Duration(i)*rule.Block
			if got := blockedBy(t, limiter, limit).RetryAfter; got != want {
				t.Errorf("block %d: retry after %v, want %v", i, got, want)
			}
			time.Sleep(rule.Block)
		}
		if d, err := limiter.Take(ctx, limit); err != nil || d.Remaining != 1 {
			t.Errorf("after the window: got %+v, %v", d, err)
		}
	})
}

// TestBlockAndOverrides wants a block to stay while the limit is changed, and a
// limit that is in shadow mode meanwhile to let everybody through.
func TestBlockAndOverrides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		var now atomic.Pointer[runtime.Override]
		source := runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			return runtime.Overrides{Rules: map[string]runtime.Override{"r": *now.Load()}}, nil
		})
		now.Store(new(runtime.Override))
		limiter := inMemory(runtime.WithOverrides(source, time.Second))
		defer limiter.Close()
		set := func(o runtime.Override) {
			now.Store(&o)
			time.Sleep(2 * time.Second)
		}
		rule := &runtime.Rule{Name: "r", Window: time.Minute, Max: 2, Block: time.Hour}
		limit := rule.Limit(key("k"))
		set(runtime.Override{})
		for range 2 {
			taken(t, limiter, limit)
		}
		blockedBy(t, limiter, limit)
		set(runtime.Override{Max: new(int64(100))})
		blockedBy(t, limiter, limit)
		set(runtime.Override{Window: new(time.Millisecond)})
		blockedBy(t, limiter, limit)
		set(runtime.Override{Mode: new(runtime.ModeShadow)})
		for range 5 {
			if d, err := limiter.Take(ctx, limit); err != nil || d.Blocked {
				t.Errorf("in shadow mode: got %+v, %v", d, err)
			}
		}
		set(runtime.Override{})
		if rest := blockedBy(t, limiter, limit).RetryAfter; rest != time.Hour-8*time.Second {
			t.Errorf("retry after %v, want the rest of the hour", rest)
		}
	})
}

// TestBlockWhileLocal wants processes that decide alone to block too.
func TestBlockWhileLocal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter := runtime.New(&brokenStore{}, quiet, runtime.WithReplicas(2))
		rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 4, Block: time.Hour, Fail: runtime.FailLocal}
		limit := rule.Limit(key("k"))
		for range 2 {
			taken(t, limiter, limit)
		}
		for i := range 3 {
			if got := blockedBy(t, limiter, limit).RetryAfter; got != time.Hour-time.Duration(i)*20*time.Minute {
				t.Errorf("try %d: retry after %v", i, got)
			}
			time.Sleep(20 * time.Minute)
		}
		if _, err := limiter.Take(t.Context(), limit); err != nil {
			t.Errorf("after the block: %v", err)
		}
	})
}

// TestBlockIsReported wants events and the log to tell a block from a denial.
func TestBlockIsReported(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var seen []runtime.DecisionEvent
	limiter := runtime.New(runtime.NewMemoryStore(), logger(&out), observing(runtime.Observer{
		Decision: withContext(func(ev runtime.DecisionEvent) { seen = append(seen, ev) }),
	}))
	plain := &runtime.Rule{Name: "plain", Window: time.Hour, Max: 1}
	block := &runtime.Rule{Name: "block", Window: time.Hour, Max: 1, Block: time.Hour}
	ghost := &runtime.Rule{Name: "ghost", Window: time.Hour, Max: 1, Block: time.Hour, Mode: runtime.ModeShadow}
	for range 2 {
		for _, rule := range []*runtime.Rule{plain, block, ghost} {
			_, _ = limiter.Take(t.Context(), rule.Limit(nil))
		}
	}
	got := map[string]bool{}
	for _, ev := range seen[3:] {
		if got[ev.Rule] = ev.Blocked; ev.Verdict == runtime.VerdictAdmitted {
			t.Errorf("got %+v, want it denied", ev)
		}
	}
	if diff := cmp.Diff(map[string]bool{"plain": false, "block": true, "ghost": false}, got); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "blocked=true") != strings.Contains(line, "rule=block ") {
			t.Errorf("a line of the log: %s", line)
		}
	}
}

// TestInvalidBlock wants a block out of bounds, and one beside a wait, refused.
func TestInvalidBlock(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	for _, test := range []struct {
		block, wait time.Duration
		want        string // of the error; none if empty
	}{
		{0, 0, ""}, {0, time.Second, ""}, {time.Millisecond, 0, ""}, {runtime.MaxWindow, 0, ""},
		{-1, 0, "block"}, {-time.Hour, 0, "block"}, {time.Nanosecond, 0, "block"}, {time.Millisecond - 1, 0, "block"},
		{runtime.MaxWindow + 1, 0, "block"}, {time.Hour, time.Nanosecond, "wait"}, {time.Millisecond, time.Hour, "wait"},
	} {
		for _, algorithm := range algorithms {
			rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 5, Algorithm: algorithm, Block: test.block, Wait: test.wait}
			_, err := limiter.Take(t.Context(), rule.Limit(nil))
			if errors.Is(err, runtime.ErrInvalidLimit) != (test.want != "") || test.want != "" && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v: block %v, wait %v: got %v", algorithm, test.block, test.wait, err)
			}
			ok(t, limiter.Reset(t.Context(), rule.Limit(nil)))
		}
	}
	permits := &runtime.Rule{Name: "p", Window: time.Second, Max: 5, Algorithm: runtime.Concurrency, Block: time.Hour}
	if _, err := limiter.Take(t.Context(), permits.Limit(nil)); !errors.Is(err, runtime.ErrInvalidLimit) {
		t.Errorf("a block of permits: got %v", err)
	}
}

// TestBlockHasKeysOfItsOwn wants a rule with a block never to share a key with one
// without, whose script would not know the block.
func TestBlockHasKeysOfItsOwn(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	for name, plain := range blockingRules(time.Hour, 10) {
		blocking := *plain
		blocking.Block = time.Minute
		long := runtime.NewKey().AddString(strings.Repeat("k", 300))
		for _, key := range []*runtime.Key{nil, key("k"), key("k%block"), long} {
			for _, rule := range []*runtime.Rule{plain, &blocking} {
				if _, err := limiter.Take(t.Context(), rule.Limit(key).WithCost(10)); err != nil {
					t.Errorf("%s: block %v: %v", name, rule.Block, err)
				}
			}
			denied(t, limiter, plain.Limit(key))
		}
	}
}
