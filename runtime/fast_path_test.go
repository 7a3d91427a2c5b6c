package runtime

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rategen/rategen/runtime/internal/denials"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A pathStore counts how often it is asked to decide a call.
type pathStore struct {
	Store
	path *path
}

func (s pathStore) Take(ctx context.Context, calls []Call) error {
	s.path.asked++
	return s.Store.Take(ctx, calls)
}

// A recalledStore is a MemoryStore that remembers denials as a RedisStore does.
type recalledStore struct {
	*MemoryStore
	denials *denials.Memory
}

func (s recalledStore) Take(ctx context.Context, calls []Call) error {
	return translated(calls, func(engine []terms.Call) error {
		return takeRecalled(ctx, s.denials, s, engine, instantOf(calls))
	})
}

func (s recalledStore) decide(_ context.Context, calls []terms.Call, arrived time.Duration) error {
	for i := range calls {
		s.states.DecideAll(s.time(arrived), calls[i].Charges, true)
		s.denials.Learn(&calls[i], arrived)
	}
	return nil
}

func (s recalledStore) Settle(ctx context.Context, charges []Charge) error {
	defer s.forget(charges)
	return s.MemoryStore.Settle(ctx, charges)
}

func (s recalledStore) Reset(ctx context.Context, charges []Charge) error {
	defer s.forget(charges)
	return s.MemoryStore.Reset(ctx, charges)
}

func (s recalledStore) forget(charges []Charge) {
	for i := range charges {
		s.denials.Forget(charges[i].Key)
	}
}

// A path is a limiter of which all is known that it says.
type path struct {
	*Limiter
	mu      sync.Mutex
	told    []string
	last    Decision
	asked   int // how often its store was
	without int // how many calls were decided without asking it
}

func (p *path) tell(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, what)
}

func (p *path) Write(line []byte) (int, error) {
	p.tell(string(line))
	return len(line), nil
}

// pathInterval makes overrides change when nothing else happens.
const pathInterval = 977_131 * time.Microsecond

// paths returns two limiters that differ in nothing but that one of them may
// decide calls on their callers' stacks.
func paths(recalling bool, source OverrideSource, on func() bool, cap *Rule) [2]*path {
	var two [2]*path
	seed := maphash.MakeSeed() // so that both forget the same denials beside others
	for i := range two {
		p, memory := new(path), NewMemoryStore()
		observer := &Observer{
			Decision: func(_ context.Context, ev DecisionEvent) { p.tell(fmt.Sprint("decision ", ev)) },
			Failure:  func(_ context.Context, ev FailureEvent) { p.tell(fmt.Sprint("failure ", ev)) },
			Override: func(ev OverrideEvent) { p.tell(fmt.Sprint("override ", ev)) },
			Scale:    func(ev ScaleEvent) { p.tell(fmt.Sprint("scale ", ev)) },
		}
		var store Store = memory
		fast := fastPath{memory: memory}
		if recalling {
			denials := denials.NewSeeded(2*time.Second, seed)
			store, fast.memory, fast.denials = recalledStore{memory, denials}, nil, denials
		}
		p.Limiter = New(pathStore{store, p}, WithNamespace("ns"), WithLogger(slog.New(slog.NewTextHandler(p, nil))), WithObserver(observer),
			WithEnabled(on), WithOverrides(source, pathInterval), WithReplicas(2), WithProcessCap(cap))
		if i == 0 {
			p.fast = fast
		}
		two[i] = p
	}
	return two
}

// TestFastPath wants the same of a call that is decided on its caller's stack
// as of any other: decision, error, lines in the log and events, whatever is
// overridden, adaptive, wrong or switched off.
func TestFastPath(t *testing.T) {
	for _, recalling := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			fast := 0
			for try := 0; try < 5 && fast == 0; try++ { // few programs may have none
				rapid.Check(bubble{t}, func(t *rapid.T) { fast += comparePaths(t, recalling) })
			}
			if fast == 0 {
				t.Error("no call took the fast path")
			}
		})
	}
}

func comparePaths(t *rapid.T, recalling bool) int {
	var overrides atomic.Pointer[Overrides]
	var off atomic.Bool
	overrides.Store(new(Overrides))
	rules := pathRules()
	cap := rapid.SampledFrom([]*Rule{
		nil,
		{Name: "process", Prefix: "process:", Window: time.Second, Max: 6},
		{Name: "process", Prefix: "process:", Window: 3 * time.Second, Max: 5, Algorithm: TokenBucket, Burst: 4},
	}).Draw(t, "cap")
	two := paths(recalling, OverrideFunc(func(context.Context) (Overrides, error) { return *overrides.Load(), nil }), func() bool { return !off.Load() }, cap)
	defer two[0].Close()
	defer two[1].Close()
	if cap != nil {
		rules = append(rules, cap)
	}
	for _, p := range two { // so that the factor is known, which is found out beside calls
		_, _ = p.Peek(context.Background(), rules[1].Limit(nil))
	}
	synctest.Wait()
	for range rapid.IntRange(5, 60).Draw(t, "steps") {
		switch rapid.SampledFrom([]string{"take", "take", "take", "take", "take", "take", "flood", "override", "switch", "refund", "reset", "peek"}).Draw(t, "op") {
		case "override":
			overrides.Store(drawOverrides(t, rules))
			time.Sleep(time.Second)
			synctest.Wait()
		case "switch":
			off.Store(rapid.IntRange(0, 5).Draw(t, "off") == 0)
		case "refund":
			limit := drawLimit(t, rules)
			same(t, two, func(p *path) string { return fmt.Sprint(p.Refund(context.Background(), p.last, limit)) })
		case "reset":
			limit := drawLimit(t, rules)
			same(t, two, func(p *path) string { return fmt.Sprint(p.Reset(context.Background(), limit)) })
		case "peek":
			limit := drawLimit(t, rules)
			same(t, two, func(p *path) string {
				d, err := p.Peek(context.Background(), limit)
				return fmt.Sprint(d, err)
			})
		case "flood":
			limit := drawLimit(t, rules)
			for range 12 {
				same(t, two, func(p *path) string { return take(p, context.Background(), limit) })
			}
		default:
			ctx, cancel := context.WithCancel(context.Background())
			switch rapid.IntRange(0, 9).Draw(t, "context") {
			case 0:
				cancel()
			case 1:
				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
			}
			limit := drawLimit(t, rules)
			same(t, two, func(p *path) string { return take(p, ctx, limit) })
			cancel()
		}
		time.Sleep(rapid.SampledFrom([]time.Duration{0, 0, 1, time.Millisecond, 99 * time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second}).Draw(t, "step"))
		synctest.Wait()
	}
	return two[0].without
}

func take(p *path, ctx context.Context, limit Limit) string {
	asked := p.asked
	d, err := p.Take(ctx, limit)
	if p.last = d; (d.Source == SourceStore || d.Source == SourceRecalled) && p.asked == asked {
		p.without++
	}
	d.page, d.receipt = nil, 0 // each has its own
	text := fmt.Sprintf("%+v %v", d, err)
	if limited := new(LimitedError); errors.As(err, &limited) {
		text += fmt.Sprint(limited.Rule, limited.Limit, limited.Remaining, limited.RetryAfter)
	}
	for _, target := range []error{ErrLimited, ErrCostExceedsLimit, ErrUnavailable, ErrInvalidKey, ErrInvalidLimit, context.Canceled, context.DeadlineExceeded} {
		text += fmt.Sprint(" ", errors.Is(err, target))
	}
	return text
}

// same has both do something at the same time.
func same(t *rapid.T, two [2]*path, do func(*path) string) {
	t.Helper()
	var said [2]string
	var both sync.WaitGroup
	for i, p := range two {
		both.Go(func() { said[i] = do(p) })
	}
	both.Wait()
	synctest.Wait()
	if diff := cmp.Diff(said[1], said[0]); diff != "" {
		t.Fatalf("(-general +fast):\n%s", diff)
	}
	for _, p := range two {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	if diff := cmp.Diff(two[1].told, two[0].told); diff != "" {
		t.Fatalf("told (-general +fast):\n%s", diff)
	}
}

// A bubble is a test in one of synctest, which has no deadline.
type bubble struct{ rapid.TB }
