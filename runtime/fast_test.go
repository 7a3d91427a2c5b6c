package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

var silent = WithLogger(slog.New(slog.DiscardHandler))

// recalling returns a limiter whose store remembers that keys are refused, and
// cannot ask anybody.
func recalling(t testing.TB, rule *Rule, keys []string) *Limiter {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	store := NewRedisStore(client, WithRefusalMemory(time.Hour))
	limiter := New(store, silent, WithFailurePolicy(FailClosed))
	p := limiter.plans.Label(new(rule.Limit(nil)))
	for _, key := range keys {
		c := make([]terms.Charge, 1)
		p.Charge(&c[0], p.AppendKey(nil, []byte(key)), 1)
		c[0].RetryAfter, c[0].ResetAfter = time.Hour, time.Hour
		store.cfg.Refusals.Learn(&terms.Call{Charges: c}, clock.Now(), clock.Now())
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

// usualAllocs returns how much calls allocate on average, rounded down: an allocation of
// errors is for many of them.
func usualAllocs(f func()) float64 { return testing.AllocsPerRun(10*errorsAtOnce, f) }

// TestTakeAllocates counts the allocations of calls that are decided in this
// process: none, but for what errors of refusals come from.
func TestTakeAllocates(t *testing.T) {
	background, id := context.Background(), ids(1)[0]
	recorded := observe.WithRecorder(background, func(observe.DecisionEvent) {})
	override := make(map[string]rule.KeyOverride)
	for _, key := range ids(1000) {
		override[key] = rule.KeyOverride{Max: new(int64(100_000))}
		override[key+"*"] = rule.KeyOverride{Max: new(int64(200_000))}
	}
	for _, algorithm := range []Algorithm{SlidingLog, SlidingCounter, FixedWindow, TokenBucket, LeakyBucket} {
		r := &Rule{Name: "orders.Service.Create", Window: time.Hour, Max: 100_000, Algorithm: algorithm}
		other := &Rule{Prefix: "rate_limit:all:", Window: time.Hour, Max: 100_000, Algorithm: algorithm}
		none := &Rule{Prefix: "rate_limit:none:", Window: time.Hour, Max: 1, Algorithm: algorithm}
		one, two, never := r.Limit(NewKey().AddString(id)), other.Limit(nil), none.Limit(NewKey().AddString(id))
		for _, test := range []struct {
			name   string
			allocs func(func()) float64
			ctx    context.Context
			opts   []Option
			limits []Limit
		}{
			{"admitted", usualAllocs, background, nil, []Limit{one}},
			{"two limits", FewestAllocs, background, nil, []Limit{one, two}},
			{"refused", usualAllocs, background, nil, []Limit{never}},
			{"capped", usualAllocs, background, []Option{WithProcessCap(other)}, []Limit{one}},
			{"empty observer", usualAllocs, background, []Option{WithObserver(new(observe.Observer))}, []Limit{one}},
			{"observed", usualAllocs, background, []Option{WithObserver(&observe.Observer{Decision: func(context.Context, observe.DecisionEvent) {}})}, []Limit{one}},
			{"refused and its key observed", usualAllocs, background, []Option{WithObserver(&observe.Observer{KeyRefused: func(context.Context, observe.KeyRefusedEvent) {}})}, []Limit{never}},
			{"recorded", FewestAllocs, recorded, nil, []Limit{one}},
			{"keys overridden", usualAllocs, background, []Option{WithOverrides(OverrideFunc(func(context.Context) (Overrides, error) {
				return Overrides{Rules: map[string]rule.Override{r.Name: {Keys: override}}}, nil
			}), time.Hour)}, []Limit{one}},
		} {
			limiter := New(NewMemoryStore(), append(test.opts, silent)...)
			take := func() error { _, err := limiter.Take(test.ctx, test.limits...); return err }
			for range 2000 { // a log has its size
				_ = take()
			}
			if got := test.allocs(func() {
				if err := take(); (err != nil) != strings.HasPrefix(test.name, "refused") {
					t.Fatalf("%v, %s: %v", algorithm, test.name, err)
				}
			}); got != 0 {
				t.Errorf("%v, %s: %v allocations", algorithm, test.name, got)
			}
			_ = limiter.Close()
		}
	}
	r := &Rule{Prefix: "rate_limit:emp:", Window: time.Hour, Max: 1}
	limiter := recalling(t, r, []string{id})
	if got := usualAllocs(func() {
		d, err := limiter.Take(background, r.Limit(NewKey().AddString(id)))
		if !errors.Is(err, ErrLimited) || d.Source != rule.SourceRecalled {
			t.Fatalf("got %+v, %v; want a recalled refusal", d, err)
		}
	}); got != 0 {
		t.Errorf("a recalled refusal: %v allocations", got)
	}
}

// TestElseAllocates counts the allocations of what else is done on a caller's path: two for
// a permit that is taken and returned, what is kept of it for renewals and its key.
func TestElseAllocates(t *testing.T) {
	ctx, told := context.Background(), make(chan bool, 2)
	limiter := New(NewMemoryStore(), silent, WithObserver(&observe.Observer{Threshold: func(observe.ThresholdEvent) { told <- true }}))
	defer limiter.Close()
	user := NewKey().AddString("user-1")
	permit := (&Rule{Name: "p", Window: time.Minute, Max: 10, Algorithm: Concurrency}).Limit(user)
	budget := (&Rule{Name: "b", Period: rule.Year, Max: 1_000_000, Algorithm: FixedWindow}).Limit(user)
	adaptive := &Rule{Name: "a", Window: time.Hour, Max: 1_000_000, Adaptive: half{}}
	limit, start := (&Rule{Name: "r", Window: time.Hour, Max: 1_000_000}).Limit(nil), time.Now()
	take := func(limit Limit) Decision {
		d, err := limiter.Take(ctx, limit)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	paid := limiter.Meter(ctx, take((&Rule{Name: "m", Window: time.Hour, Max: 1_000_000, Algorithm: FixedWindow}).Limit(nil).WithCost(100_000)), 0)
	take(budget.WithCost(900_000))
	<-told
	for _, test := range []struct {
		name string
		most float64
		do   func()
	}{
		{"permit", 2, func() { limiter.SettleLater(ctx, take(permit)) }},
		{"over a share that was told", 0, func() { take(budget) }},
		{"settle later", 0, func() { limiter.SettleLater(ctx, take(limit), 0) }},
		{"measure", 0, func() { lent{limiter}.Measure(adaptive, start) }},
		{"adaptive", 0, func() { take(adaptive.Limit(nil)) }},
		{"meter what is paid in advance", 0, func() {
			if err := paid.Charge(1); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		test.do()
		if n := FewestAllocs(test.do); n > test.most {
			t.Errorf("%s: %v allocations, want at most %v", test.name, n, test.most)
		}
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
		got := FewestAllocs(func() {
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
	}
}

// TestErrorsAreTheirOwn has goroutines keep the errors of their refusals, which come from
// shared memory: none is another one's, and none changes.
func TestErrorsAreTheirOwn(t *testing.T) {
	t.Parallel()
	const callers, calls = 8, 5*errorsAtOnce + 1
	limiter := New(NewMemoryStore(), silent)
	errs := make([][]*LimitedError, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			rule := &Rule{Name: fmt.Sprint("r", i), Window: time.Hour, Max: int64(i + 1), Message: fmt.Sprint("m", i)}
			for range int64(i+1) + calls {
				_, err := limiter.Take(context.Background(), rule.Limit(nil))
				if limited := new(LimitedError); errors.As(err, &limited) {
					errs[i] = append(errs[i], limited)
				}
			}
		})
	}
	all.Wait()
	seen := map[*LimitedError]bool{}
	for i := range callers {
		if len(errs[i]) != calls {
			t.Errorf("caller %d: %d refusals, want %d", i, len(errs[i]), calls)
		}
		for _, e := range errs[i] {
			if seen[e] || e.Rule != fmt.Sprint("r", i) || e.Limit != int64(i+1) || e.Error() != fmt.Sprint("m", i) || e.RetryAfter <= 0 {
				t.Fatalf("caller %d: %+v, %v, seen before %v", i, e, e, seen[e])
			}
			seen[e] = true
		}
	}
}

// half is a Scaler.
type half struct{}

func (half) Factor(rule.Load) float64 { return 0.5 }
