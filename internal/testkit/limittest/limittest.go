// Package limittest has what tests of limiters share.
package limittest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

var (
	// Quiet keeps the log out of a test's output.
	Quiet = runtime.WithLogger(slog.New(slog.DiscardHandler))
	// Closed makes every answer that the store did not give an error.
	Closed = runtime.WithFailurePolicy(runtime.FailClosed)
	// AtOnce has the store ask Redis about every call: refusals are remembered by
	// the process's clock, which is not the one that a test moves.
	AtOnce = runtime.WithRefusalMemory(0)
	// Patient lets a store wait for longer than a busy machine takes.
	Patient = runtime.WithTimeout(20 * time.Second)
)

// Unhurried has a client wait for a server that is paused while a busy machine prepares a test.
func Unhurried(o *redis.Options) { o.ReadTimeout = time.Minute }

// Equal wants a number, or what else can be compared, to be as it is to be.
func Equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Between wants a number to be from least to most.
func Between[T ~int | ~int64](t testing.TB, what string, got, least, most T) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: got %v, want from %v to %v", what, got, least, most)
	}
}

// Same wants two values to be the same in all their parts.
func Same[T any](t testing.TB, what string, want, got T, opts ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Key returns a key of one part.
func Key(id string) *runtime.Key { return runtime.NewKey().AddString(id) }

// OnRedis returns a limiter on a Patient store, which fails closed.
func OnRedis(client redis.UniversalClient, opts ...runtime.RedisOption) *runtime.Limiter {
	return runtime.New(runtime.NewRedisStore(client, append([]runtime.RedisOption{Patient}, opts...)...), Quiet, Closed)
}

// Taken takes limits, which must have room.
func Taken(t testing.TB, l *runtime.Limiter, limits ...runtime.Limit) runtime.Decision {
	t.Helper()
	d, err := l.Take(context.Background(), limits...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Refused takes limits, which must have no room, and returns why.
func Refused(t testing.TB, l *runtime.Limiter, limits ...runtime.Limit) (runtime.Decision, *runtime.LimitedError) {
	t.Helper()
	d, err := l.Take(context.Background(), limits...)
	var limited *runtime.LimitedError
	if !errors.As(err, &limited) || d.Allowed || d.Rule != limited.Rule || d.RetryAfter != limited.RetryAfter {
		t.Fatalf("got %+v, %v, want a refusal", d, err)
	}
	return d, limited
}

// Blocked takes limits of which a block refuses one, and returns the refusal.
func Blocked(t testing.TB, l *runtime.Limiter, limits ...runtime.Limit) *runtime.LimitedError {
	t.Helper()
	d, limited := Refused(t, l, limits...)
	if !limited.Blocked || limited.Remaining != 0 || limited.RetryAfter <= 0 || !d.Blocked || d.Remaining != 0 || d.ResetAfter < d.RetryAfter {
		t.Fatalf("%s: got %+v, %+v, want a refusal by a block", d.Rule, d, limited)
	}
	return limited
}

// Settled settles a decision.
func Settled(t testing.TB, l *runtime.Limiter, d runtime.Decision, costs ...int64) {
	t.Helper()
	OK(t, l.Settle(context.Background(), d, costs...))
}

// Left returns what a limit has left.
func Left(t testing.TB, l *runtime.Limiter, limit runtime.Limit) int64 {
	t.Helper()
	d, err := l.Peek(context.Background(), limit)
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// Passing returns how many of n calls are admitted.
func Passing(t testing.TB, l *runtime.Limiter, limit runtime.Limit, n int) int {
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

// Elapsed returns how long f takes on the clock of the bubble.
func Elapsed(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}

// Eventually returns when done is, and fails the test if that takes so long that it never will.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for start := time.Now(); !done(); time.Sleep(time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatalf("it never comes that %s", what)
		}
	}
}

// Refunded gives back a decision.
func Refunded(t testing.TB, l *runtime.Limiter, d runtime.Decision) {
	t.Helper()
	OK(t, l.Refund(context.Background(), d))
}

// OK wants no error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// WantLeft wants a limit to have that much left.
func WantLeft(t testing.TB, l *runtime.Limiter, limit runtime.Limit, want int64) {
	t.Helper()
	if got := Left(t, l, limit); got != want {
		t.Errorf("%d left, want %d", got, want)
	}
}

// WantPassing wants so many of n calls to be admitted.
func WantPassing(t testing.TB, l *runtime.Limiter, limit runtime.Limit, n, want int) {
	t.Helper()
	if got := Passing(t, l, limit, n); got != want {
		t.Errorf("%d of %d calls admitted, want %d", got, n, want)
	}
}

// Causes returns the texts of an error and of all that it wraps.
func Causes(err error) (texts string) {
	for ; err != nil; err = errors.Unwrap(err) {
		texts += err.Error() + "\n"
	}
	return texts
}

// Concurrently has n goroutines do something, and returns when all have.
func Concurrently(n int, do func(i int)) {
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { do(i) })
	}
	wait.Wait()
}

// Observing returns an observer's option.
func Observing(o observe.Observer) runtime.Option { return runtime.WithObserver(&o) }

// Executions returns how many scripts a server has executed.
func Executions(t *testing.T, client *redis.Client) int {
	t.Helper()
	info, err := client.Info(context.Background(), "commandstats").Result()
	OK(t, err)
	total := 0
	for _, command := range []string{"evalsha", "eval"} {
		stat := regexp.MustCompile(fmt.Sprintf(`cmdstat_%s:calls=(\d+),.*rejected_calls=(\d+),failed_calls=(\d+)`, command))
		if match := stat.FindStringSubmatch(info); match != nil {
			called, _ := strconv.Atoi(match[1])
			failed, _ := strconv.Atoi(match[3])
			total += called - failed
		}
	}
	return total
}

// Metered begins a call that is charged while it runs, with one unit in advance.
func Metered(t testing.TB, l *runtime.Limiter, limits ...runtime.Limit) *runtime.Meter {
	t.Helper()
	return l.Meter(context.Background(), Taken(t, l, limits...), make([]int64, len(limits))...)
}
