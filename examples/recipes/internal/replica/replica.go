// Package replica makes limiters as the replicas of a service have them, which share a Redis.
package replica

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// patience is how long a replica waits for Redis: a machine may be busy.
const patience = 30 * time.Second

// Limiters returns those of two replicas, which share a Redis of their own, see [On].
func Limiters(t *testing.T, options ...runtime.Option) [2]*runtime.Limiter {
	t.Helper()
	return On(t, redistest.Start(t), func(*redis.Client) []runtime.Option { return options })
}

// On returns the limiters of two replicas, each with connections and a store of its own. They refuse
// calls that Redis does not decide, so that none of them is taken for an admitted one.
func On(t *testing.T, server *redistest.Server, options func(*redis.Client) []runtime.Option) (all [2]*runtime.Limiter) {
	t.Helper()
	for i := range all {
		client := server.Client(t, func(o *redis.Options) { o.ReadTimeout = patience })
		opts := []runtime.Option{runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithFailurePolicy(runtime.FailClosed)}
		all[i] = runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(patience)), append(opts, options(client)...)...)
		t.Cleanup(func() { limittest.OK(t, all[i].Close()) })
	}
	return all
}

// Year returns an option that gives rules a window that nothing leaves during a test, however slow
// it is.
func Year(rules ...string) runtime.Option {
	window := 365 * 24 * time.Hour
	set := runtime.Overrides{Rules: map[string]rule.Override{}}
	for _, name := range rules {
		set.Rules[name] = rule.Override{Window: &window}
	}
	return runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) { return set, nil }), time.Hour)
}

// All has each of some services do something, all at the same time, and returns what they say.
func All[S, A any](services []S, do func(S) A) []A {
	answers := make([]A, len(services))
	var all sync.WaitGroup
	for i, s := range services {
		all.Go(func() { answers[i] = do(s) })
	}
	all.Wait()
	return answers
}
