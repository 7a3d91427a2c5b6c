package runtime_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// TestForeignType has somebody else's values under a limit's key: the call fails by its policy,
// others beside it do not, and a reset heals the key.
func TestForeignType(t *testing.T) {
	client := ownRedis(t)
	limiterOf := func(policy runtime.FailurePolicy) *runtime.Limiter {
		return runtime.New(runtime.NewRedisStore(client, patient), quiet, runtime.WithFailurePolicy(policy))
	}
	closed, open, local := limiterOf(runtime.FailClosed), limiterOf(runtime.FailOpen), limiterOf(runtime.FailLocal)
	for name, rule := range serverRules(time.Hour, 2) {
		t.Run(name, func(t *testing.T) {
			limit := rule.Limit(key(strings.Repeat("long", 100))) // a part of its key is a hash
			good := (&runtime.Rule{Name: "good", Prefix: "good:", Window: time.Hour, Max: 100}).Limit(key(name))
			redisKey := closed.RedisKey(limit)
			fails := func(what string, limits ...runtime.Limit) {
				t.Helper()
				if _, err := closed.Take(t.Context(), limits...); !errors.Is(err, runtime.ErrUnavailable) || !strings.Contains(causes(err), "WRONGTYPE") {
					t.Errorf("%s: got %v, want ErrUnavailable and WRONGTYPE", what, err)
				}
			}
			client.Set(t.Context(), redisKey, "somebody else's", 0)
			fails("a string", limit)
			client.Del(t.Context(), redisKey)
			client.SAdd(t.Context(), redisKey, "somebody else's")
			fails("a set", good, limit)
			equal(t, "open: source", taken(t, open, limit).Source, runtime.SourceFailure)
			for range 2 {
				equal(t, "local: source", taken(t, local, limit).Source, runtime.SourceLocal)
			}
			d, _ := denied(t, local, limit)
			equal(t, "local: source of a denial", d.Source, runtime.SourceLocal)
			wantLeft(t, local, good, 100)
			outcomes := closed.TakeEach(t.Context(), good, limit, good)
			if outcomes[0].Err != nil || !errors.Is(outcomes[1].Err, runtime.ErrUnavailable) || outcomes[2].Err != nil || outcomes[2].Remaining != 98 {
				t.Errorf("in a batch: got %+v", outcomes)
			}
			ok(t, closed.Reset(t.Context(), limit))
			taken(t, closed, limit)
		})
	}
}
