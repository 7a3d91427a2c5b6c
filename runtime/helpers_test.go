package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
)

var (
	// quiet keeps the log out of a test's output.
	quiet = runtime.WithLogger(slog.New(slog.DiscardHandler))
	// closed makes every answer that the store did not give an error.
	closed = runtime.WithFailurePolicy(runtime.FailClosed)
	// atOnce has the store ask Redis about every call: denials are remembered by
	// the process's clock, which is not the one that a test moves.
	atOnce = runtime.WithDenialMemory(0)
)

// patient lets a store wait for longer than a busy machine takes, and lets
// TestMutations change its scripts.
func patient(s *runtime.RedisStore) {
	runtime.WithTimeout(20 * time.Second)(s)
	runtime.Mutate(s)
}

// inMemory returns a limiter on a store of its own.
func inMemory(opts ...runtime.Option) *runtime.Limiter {
	return runtime.New(runtime.NewMemoryStore(), append([]runtime.Option{quiet}, opts...)...)
}

// onRedis returns a limiter on a patient store, which fails closed.
func onRedis(client redis.UniversalClient, opts ...runtime.RedisOption) *runtime.Limiter {
	return runtime.New(runtime.NewRedisStore(client, append([]runtime.RedisOption{patient}, opts...)...), quiet, closed)
}

// key returns a key of one part.
func key(id string) *runtime.Key { return runtime.NewKey().AddString(id) }

// Rules for any test: one that admits one call, and one that keeps nobody out.
var (
	narrow = &runtime.Rule{Name: "narrow", Prefix: "narrow:", Window: time.Hour, Max: 1}
	wide   = &runtime.Rule{Name: "wide", Prefix: "wide:", Window: time.Hour, Max: 1_000_000, Algorithm: runtime.FixedWindow}
)

// algorithms are those that count calls, and no calls at a time.
var algorithms = []runtime.Algorithm{runtime.SlidingLog, runtime.SlidingCounter, runtime.FixedWindow, runtime.TokenBucket, runtime.LeakyBucket}

func isBucket(r *runtime.Rule) bool {
	return r.Algorithm == runtime.TokenBucket || r.Algorithm == runtime.LeakyBucket
}

// taken takes limits, which must have room.
func taken(t testing.TB, l *runtime.Limiter, limits ...runtime.Limit) runtime.Decision {
	t.Helper()
	d, err := l.Take(context.Background(), limits...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// denied takes limits, which must have no room, and returns why.
func denied(t testing.TB, l *runtime.Limiter, limits ...runtime.Limit) (runtime.Decision, *runtime.LimitedError) {
	t.Helper()
	d, err := l.Take(context.Background(), limits...)
	var limited *runtime.LimitedError
	if !errors.As(err, &limited) || d.Allowed || d.Rule != limited.Rule || d.RetryAfter != limited.RetryAfter {
		t.Fatalf("got %+v, %v, want a denial", d, err)
	}
	return d, limited
}

// settled settles a decision.
func settled(t testing.TB, l *runtime.Limiter, d runtime.Decision, limits ...runtime.Limit) {
	t.Helper()
	if err := l.Settle(context.Background(), d, limits...); err != nil {
		t.Fatal(err)
	}
}

// left returns what a limit has left.
func left(t testing.TB, l *runtime.Limiter, limit runtime.Limit) int64 {
	t.Helper()
	d, err := l.Peek(context.Background(), limit)
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// passing returns how many of n calls are admitted.
func passing(t testing.TB, l *runtime.Limiter, limit runtime.Limit, n int) int {
	t.Helper()
	got := 0
	for range n {
		_, err := l.Take(context.Background(), limit)
		if err == nil {
			got++
		} else if !errors.Is(err, runtime.ErrLimited) {
			t.Fatal(err)
		}
	}
	return got
}

// single returns a call of one charge, for a store without a limiter.
func single(rule *runtime.Rule, key string, cost int64) []rawstore.Call {
	return []rawstore.Call{{Charges: []rawstore.Charge{chargeOf(rule, key, cost)}}}
}

func chargeOf(rule *runtime.Rule, key string, cost int64) rawstore.Charge {
	return rawstore.Charge{Rule: rule, Key: []byte(key), Max: rule.Max, Cost: cost, Wait: rule.Wait}
}

// An operation is one of a store, without a limiter.
type operation func(rawstore.Store, context.Context, []rawstore.Call) error

var take, peek, renew operation = rawstore.Store.Take, rawstore.Store.Peek, rawstore.Store.Renew

// try has a store do something with calls, and returns the first one's first charge and
// what any of them failed with.
func try(store runtime.Store, do operation, calls []rawstore.Call) (rawstore.Charge, error) {
	err := do(rawstore.On(store), context.Background(), calls)
	for i := range calls {
		err = errors.Join(err, calls[i].Err)
	}
	return calls[0].Charges[0], err
}

// must is try, of calls that must be answered.
func must(t testing.TB, store runtime.Store, do operation, calls []rawstore.Call) rawstore.Charge {
	t.Helper()
	c, err := try(store, do, calls)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// elapsed returns how long f takes on the clock of the bubble.
func elapsed(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}

// eventually returns when done is, and fails the test if that takes too long.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for start := time.Now(); !done(); time.Sleep(time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("it never comes that %s", what)
		}
	}
}

// fewestAllocs returns how often f allocates when pooled memory is at hand,
// which the race detector drops at random.
func fewestAllocs(f func()) float64 {
	least := testing.AllocsPerRun(1, f)
	for range 100 {
		least = min(least, testing.AllocsPerRun(1, f))
	}
	return least
}

// causes returns the texts of an error and of all that it wraps.
func causes(err error) (texts string) {
	for ; err != nil; err = errors.Unwrap(err) {
		texts += err.Error() + "\n"
	}
	return texts
}

// lines is a log that may be read while it is written, without the time.
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
	return runtime.WithLogger(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
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

// withContext returns f as a function of an observer that receives a context.
func withContext[E any](f func(E)) func(context.Context, E) {
	return func(_ context.Context, ev E) { f(ev) }
}

// observing returns an observer's option.
func observing(o runtime.Observer) runtime.Option { return runtime.WithObserver(&o) }

// fixed are overrides that never change.
type fixed runtime.Overrides

func (f fixed) Overrides(context.Context) (runtime.Overrides, error) {
	return runtime.Overrides(f), nil
}

// overridden has overrides hold from the start.
func overridden(o runtime.Overrides) runtime.Option {
	return runtime.WithOverrides(fixed(o), time.Hour)
}

// one overrides the rule named r.
func one(of runtime.Override) runtime.Overrides {
	return runtime.Overrides{Rules: map[string]runtime.Override{"r": of}}
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
// every second.
func following(t *testing.T, opts ...runtime.Option) (*runtime.Limiter, *board) {
	b := new(board)
	l := inMemory(append(opts, runtime.WithOverrides(b, time.Second))...)
	t.Cleanup(func() { _ = l.Close() })
	return l, b
}

var errBroken = errors.New("the store is broken")

// A brokenStore answers every operation with an error.
type brokenStore struct{ takes atomic.Int64 }

func (s *brokenStore) Take(context.Context, []terms.Call) error {
	s.takes.Add(1)
	return errBroken
}
func (s *brokenStore) Peek(context.Context, []terms.Call) error     { return errBroken }
func (s *brokenStore) Settle(context.Context, []terms.Charge) error { return errBroken }
func (s *brokenStore) Renew(context.Context, []terms.Call) error    { return errBroken }
func (s *brokenStore) Hold(context.Context, []terms.Charge) error   { return errBroken }
func (s *brokenStore) Reset(context.Context, []terms.Charge) error  { return errBroken }

// pass is a store of another type, which has no fast path.
type pass struct{ runtime.Store }

// A hook sees each command that a client sends.
type hook func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }
func (hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return h(ctx, cmd, next) }
}

// refunded gives back a decision.
func refunded(t testing.TB, l *runtime.Limiter, d runtime.Decision, limits ...runtime.Limit) {
	t.Helper()
	if err := l.Refund(context.Background(), d, limits...); err != nil {
		t.Fatal(err)
	}
}

// ok wants no error.
func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantLeft wants a limit to have that much left.
func wantLeft(t testing.TB, l *runtime.Limiter, limit runtime.Limit, want int64) {
	t.Helper()
	if got := left(t, l, limit); got != want {
		t.Errorf("%d left, want %d", got, want)
	}
}

// wantPassing wants so many of n calls to be admitted.
func wantPassing(t testing.TB, l *runtime.Limiter, limit runtime.Limit, n, want int) {
	t.Helper()
	if got := passing(t, l, limit, n); got != want {
		t.Errorf("%d of %d calls admitted, want %d", got, n, want)
	}
}
