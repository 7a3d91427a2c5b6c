package runtime

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/terms"
)

var silent = WithLogger(slog.New(slog.DiscardHandler))

// recalling returns a limiter whose store remembers that keys are denied, and
// cannot ask anybody.
func recalling(t testing.TB, rule *Rule, keys []string) *Limiter {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	store := NewRedisStore(client, WithDenialMemory(time.Hour))
	limiter := New(store, silent, WithFailurePolicy(FailClosed))
	p := limiter.plan(rule, rule.Max)
	for _, key := range keys {
		c := make([]terms.Charge, 1)
		p.Charge(&c[0], p.AppendKey(nil, []byte(key)), 1)
		c[0].RetryAfter, c[0].ResetAfter = time.Hour, time.Hour
		store.cfg.Denials.Learn(&terms.Call{Charges: c}, clock.Now())
	}
	return limiter
}

func ids(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = "user-" + strconv.Itoa(i*7919%1_000_003)
	}
	return out
}

// fewestAllocs returns the least that a call allocates which uses a pool: the race
// detector has pools forget at random.
func fewestAllocs(f func()) float64 {
	least := testing.AllocsPerRun(1, f)
	for range 1000 {
		least = min(least, testing.AllocsPerRun(1, f))
	}
	return least
}

// usualAllocs returns how much calls allocate on average, rounded down: a page of
// errors is for many of them.
func usualAllocs(f func()) float64 { return testing.AllocsPerRun(10*pageErrors, f) }

// TestTakeAllocates counts the allocations of calls that are decided in this
// process: none, but for the page that errors of denials come from.
func TestTakeAllocates(t *testing.T) {
	ctx := context.Background()
	id := ids(1)[0]
	for _, algorithm := range []Algorithm{SlidingLog, SlidingCounter, FixedWindow, TokenBucket, LeakyBucket} {
		rule := &Rule{Prefix: "rate_limit:emp:", Window: time.Hour, Max: 100_000, Algorithm: algorithm}
		other := &Rule{Prefix: "rate_limit:all:", Window: time.Hour, Max: 100_000, Algorithm: algorithm}
		none := &Rule{Prefix: "rate_limit:none:", Window: time.Hour, Max: 1, Algorithm: algorithm}
		limiter := New(NewMemoryStore(), silent)
		capped := New(NewMemoryStore(), silent, WithProcessCap(other))
		observed := New(NewMemoryStore(), silent, WithObserver(&Observer{Decision: func(context.Context, DecisionEvent) {}}))
		takes := map[string]struct {
			allocs func(func()) float64
			denied bool
			take   func() error
		}{
			"admitted": {usualAllocs, false, func() error { _, err := limiter.Take(ctx, rule.Limit(NewKey().AddString(id))); return err }},
			"two limits": {fewestAllocs, false, func() error {
				_, err := limiter.Take(ctx, rule.Limit(NewKey().AddString(id)), other.Limit(nil))
				return err
			}},
			"capped":   {usualAllocs, false, func() error { _, err := capped.Take(ctx, rule.Limit(NewKey().AddString(id))); return err }},
			"observed": {usualAllocs, false, func() error { _, err := observed.Take(ctx, rule.Limit(NewKey().AddString(id))); return err }},
			"denied":   {usualAllocs, true, func() error { _, err := limiter.Take(ctx, none.Limit(NewKey().AddString(id))); return err }},
		}
		for name, test := range takes {
			for range 2000 { // a log has its size
				_ = test.take()
			}
			got := test.allocs(func() {
				if err := test.take(); (err != nil) != test.denied {
					t.Fatalf("%v, %s: %v", algorithm, name, err)
				}
			})
			if got != 0 {
				t.Errorf("%v, %s: %v allocations", algorithm, name, got)
			}
		}
	}
	rule := &Rule{Prefix: "rate_limit:emp:", Window: time.Hour, Max: 1}
	limiter := recalling(t, rule, []string{id})
	got := usualAllocs(func() {
		d, err := limiter.Take(ctx, rule.Limit(NewKey().AddString(id)))
		if !errors.Is(err, ErrLimited) || d.Source != SourceRecalled {
			t.Fatalf("got %+v, %v; want a recalled denial", d, err)
		}
	})
	if got != 0 {
		t.Errorf("a recalled denial: %v allocations", got)
	}
}

// TestTakeAllocatesNothingForThoseWhoComeBack has a caller come back when all
// about it is forgotten.
func TestTakeAllocatesNothingForThoseWhoComeBack(t *testing.T) {
	ctx := context.Background()
	for _, algorithm := range []Algorithm{SlidingLog, SlidingCounter, FixedWindow, TokenBucket, LeakyBucket} {
		rule := &Rule{Prefix: "r:", Window: time.Hour, Max: 3, Algorithm: algorithm}
		store, now := NewMemoryStore(), time.Now().UnixMicro()
		store.SetClock(func() int64 { return now })
		limiter := New(store, silent)
		got := fewestAllocs(func() {
			now += 3 * time.Hour.Microseconds()
			for left := int64(2); left >= 0; left-- {
				if d, err := limiter.Take(ctx, rule.Limit(nil)); err != nil || d.Remaining != left {
					t.Fatalf("%v: got %+v, %v; want %d left", algorithm, d, err, left)
				}
			}
		})
		if got != 0 || store.Keys() != 1 {
			t.Errorf("%v: %v allocations, %d keys", algorithm, got, store.Keys())
		}
		other := *rule
		other.Algorithm = (algorithm + 1) % LeakyBucket
		now += 3 * time.Hour.Microseconds()
		c := make([]terms.Charge, 1)
		limiter.plan(&other, 3).Charge(&c[0], limiter.plan(rule, 3).AppendKey(nil, nil), 1)
		calls := []terms.Call{{Charges: c}}
		if err := store.Take(ctx, calls); err != nil || calls[0].Err != nil || !c[0].Allowed {
			t.Errorf("another algorithm on a forgotten key: got %+v, %v, %v", c, err, calls[0].Err)
		}
	}
}

// BenchmarkTake measures what a call costs that is decided in this process.
func BenchmarkTake(b *testing.B) {
	ctx := context.Background()
	rule := &Rule{Prefix: "rate_limit:emp:", Window: time.Hour, Max: 1_000_000, Algorithm: TokenBucket}
	none := &Rule{Prefix: "rate_limit:none:", Window: time.Hour, Max: 1, Algorithm: TokenBucket}
	keys := ids(1000)
	memory := New(NewMemoryStore(), silent)
	for _, bench := range []struct {
		name    string
		limiter *Limiter
		rule    *Rule
	}{
		{"memory admitted", memory, rule},
		{"memory denied", memory, none},
		{"recalled denial", recalling(b, none, keys), none},
	} {
		take := func(i int) error {
			_, err := bench.limiter.Take(ctx, bench.rule.Limit(NewKey().AddString(keys[i%len(keys)])))
			return err
		}
		for i := range keys {
			_ = take(i)
		}
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_ = take(i)
			}
		})
		b.Run(bench.name+" parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					_ = take(i)
				}
			})
		})
	}
}

// Settling later allocates nothing on its caller's path.
func TestSettleLaterAllocates(t *testing.T) {
	ctx := context.Background()
	limiter := New(NewMemoryStore(), silent)
	limit := (&Rule{Name: "r", Window: time.Hour, Max: 1_000_000}).Limit(nil)
	if n := fewestAllocs(func() {
		d, err := limiter.Take(ctx, limit)
		if err != nil {
			t.Fatal(err)
		}
		limiter.SettleLater(ctx, d, limit.WithSettled(0))
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
