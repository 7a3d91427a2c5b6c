package runtime_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/rule"
)

var quiet, closed, atOnce, patient = limittest.Quiet, limittest.Closed, limittest.AtOnce, limittest.Patient

// What stores and limiters are asked most often, and how.
var (
	serverRules, blockingRules             = storetest.WaysOf, storetest.BlockingWaysOf
	single, chargeOf, try, must            = storetest.Single, storetest.ChargeOf, storetest.Try, storetest.Must
	take, peek, renew                      = storetest.Take, storetest.Peek, storetest.Renew
	key, taken, refused, settled, refunded = limittest.Key, limittest.Taken, limittest.Refused, limittest.Settled, limittest.Refunded
	left, wantLeft, passing, wantPassing   = limittest.Left, limittest.WantLeft, limittest.Passing, limittest.WantPassing
	ok, eventually, elapsed, concurrently  = limittest.OK, limittest.Eventually, limittest.Elapsed, limittest.Concurrently
	observing, metered, executions         = limittest.Observing, limittest.Metered, limittest.Executions
	onRedis, unhurried                     = limittest.OnRedis, limittest.Unhurried
	fewestAllocs, blockedBy, causes        = runtime.FewestAllocs, limittest.Blocked, limittest.Causes
)

// equal wants a number, or what else can be compared, to be as it is to be.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	limittest.Equal(t, what, got, want)
}

// between wants a number to be from least to most.
func between[T ~int | ~int64](t testing.TB, what string, got, least, most T) {
	t.Helper()
	limittest.Between(t, what, got, least, most)
}

// same wants two values to be the same in all their parts.
func same[T any](t testing.TB, what string, want, got T, opts ...cmp.Option) {
	t.Helper()
	limittest.Same(t, what, want, got, opts...)
}

type lines = limittest.Lines

// inMemory returns a limiter on a store of its own.
func inMemory(opts ...runtime.Option) *runtime.Limiter {
	return runtime.New(runtime.NewMemoryStore(), append([]runtime.Option{quiet}, opts...)...)
}

// ownRedis starts a server for a test that runs beside others, and returns a client of it.
func ownRedis(t *testing.T) *redis.Client {
	t.Helper()
	t.Parallel()
	return redistest.Start(t).Client(t)
}

// Rules for any test: one that admits one call, and one that keeps nobody out.
var (
	narrow = &runtime.Rule{Name: "narrow", Prefix: "narrow:", Window: time.Hour, Max: 1}
	wide   = &runtime.Rule{Name: "wide", Prefix: "wide:", Window: time.Hour, Max: 1_000_000, Algorithm: runtime.FixedWindow}
)

// perHour returns a rule for any test, which is named r.
func perHour(max int64) *runtime.Rule {
	return &runtime.Rule{Name: "r", Window: time.Hour, Max: max}
}

// algorithms are those that count calls, and no calls at a time.
var algorithms = []runtime.Algorithm{runtime.SlidingLog, runtime.SlidingCounter, runtime.FixedWindow, runtime.TokenBucket, runtime.LeakyBucket}

func isBucket(r *runtime.Rule) bool {
	return r.Algorithm == runtime.TokenBucket || r.Algorithm == runtime.LeakyBucket
}

// wantError wants an error to be a certain one, or none if that is nil.
func wantError(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

// takenBy takes limits, which must have room, and wants a source to have decided that.
func takenBy(t testing.TB, l *runtime.Limiter, source rule.Source, limits ...runtime.Limit) runtime.Decision {
	t.Helper()
	d := taken(t, l, limits...)
	equal(t, "admitted by", d.Source, source)
	return d
}

// refused takes limits, and wants a certain error, whatever its reason.
func refusedAs(t testing.TB, l *runtime.Limiter, want error, limits ...runtime.Limit) runtime.Decision {
	t.Helper()
	d, err := l.Take(context.Background(), limits...)
	if !errors.Is(err, want) || d.Allowed {
		t.Errorf("got %+v, %v, want %v", d, err, want)
	}
	return d
}

// A recorder keeps the events that it is told.
type recorder[E any] struct {
	mu     sync.Mutex
	events []E
}

func (r *recorder[E]) add(ev E) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, ev)
}

func (r *recorder[E]) all() []E {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// withContext returns f as a function of an observer that receives a context.
func withContext[E any](f func(E)) func(context.Context, E) {
	return func(_ context.Context, ev E) { f(ev) }
}

// fixed are overrides that never change.
type fixed runtime.Overrides

func (f fixed) Overrides(context.Context) (runtime.Overrides, error) {
	return runtime.Overrides(f), nil
}

// overridden has overrides hold from the start.
func overridden(o runtime.Overrides) runtime.Option {
	return runtime.WithOverrides(fixed(o), time.Hour)
}

// overridesOf returns overrides of the rule named r.
func overridesOf(o rule.Override) runtime.Overrides {
	return runtime.Overrides{Rules: map[string]rule.Override{"r": o}}
}

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

// put has overrides come into force, in a bubble where a limiter looks every second.
func (b *board) put(o runtime.Overrides) {
	b.set(o, nil)
	time.Sleep(time.Second)
	synctest.Wait()
}

// following returns a limiter in memory, in a bubble, and the board that it looks at
// every so often.
func following(t *testing.T, every time.Duration, opts ...runtime.Option) (*runtime.Limiter, *board) {
	b := new(board)
	l := inMemory(append(opts, runtime.WithOverrides(b, every))...)
	t.Cleanup(func() { _ = l.Close() })
	return l, b
}

// bubble runs a test with a clock of its own, which moves when all its goroutines wait.
func bubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// eachCase tries every case in a bubble of its own.
func eachCase[C any](t *testing.T, cases map[string]C, try func(*testing.T, C)) {
	t.Helper()
	t.Parallel()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { try(t, c) }) })
	}
}

func TestMain(m *testing.M) { limittest.Main(m) }
