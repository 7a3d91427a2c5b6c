package override_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// A skewed hook has a Redis whose clock is ahead of ours.
type skewed struct{ ahead time.Duration }

func (s skewed) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s skewed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s skewed) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if now, is := cmd.(*redis.TimeCmd); is && err == nil {
			now.SetVal(now.Val().Add(s.ahead))
		}
		return err
	}
}

// TestClockOfRedis has ends that are over by the clock of the process, and not by that of Redis, and the
// other way round.
func TestClockOfRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, ahead := range []time.Duration{-90 * time.Second, -time.Hour, 0, 90 * time.Second, time.Hour} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			client := server.Client(t)
			client.AddHook(skewed{ahead})
			key := fmt.Sprint("limits", ahead)
			editor := override.NewEditor(client, key)
			now := client.Time(t.Context()).Val()
			for name, end := range map[string]time.Duration{"soon": time.Minute, "over": -time.Minute} {
				limittest.OK(t, client.HSet(t.Context(), key, name, fmt.Sprintf(`{"max":7,"until":%q}`, now.Add(end).UTC().Format(time.RFC3339))).Err())
			}
			says, err := override.Redis(client, key).Overrides(t.Context())
			if err != nil || says.Rules["soon"].Max == nil || says.Rules["over"].Max != nil {
				t.Errorf("%+v, %v", says, err)
			}
			if _, err := editor.Edit(t.Context(), override.Edit{Target: override.Target{Rule: "r"}, Set: rule.KeyOverride{Max: new(int64(1))}, Until: now.Add(time.Minute)}); err != nil {
				t.Error(err)
			}
			if _, err := editor.Edit(t.Context(), override.Edit{Target: override.Target{Rule: "r"}, Set: rule.KeyOverride{Max: new(int64(1))}, Until: now.Add(-time.Second)}); err == nil {
				t.Error("an end that is over in Redis is taken")
			}
		})
	}
}

// TestRejectedStays looks again and again at a program whose hash is rejected, while something in it has
// an end.
func TestRejectedStays(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	set := func(max string) {
		limittest.OK(t, client.HSet(t.Context(), "limits", "r", fmt.Sprintf(`{"max":%s,"until":%q}`, max, until)).Err())
	}
	set("7")
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithOverrides(override.Redis(client, "limits"), time.Millisecond))
	defer limiter.Close()
	limiter.Register(&runtime.Rule{Name: "r", Max: 1, Window: time.Minute})
	listed := func() bool { // as unread on a machine so busy that a look takes too long
		return slices.ContainsFunc(limiter.Findings(), func(f observe.Finding) bool {
			return f.Code == "overrides_rejected" || f.Code == "overrides_unread"
		})
	}
	await := func(want bool) {
		t.Helper()
		for begin := time.Now(); listed() != want; time.Sleep(time.Millisecond) {
			if time.Since(begin) > time.Minute {
				t.Fatalf("listed: %v", !want)
			}
		}
	}
	set(`"text"`)
	await(true)
	missed := 0
	for range 200 {
		time.Sleep(time.Millisecond)
		missed++
		if listed() {
			missed = 0
		}
		if missed > 1 { // it is off the list for a moment when it comes to be unread
			t.Fatal("it is off the list, and nobody has mended it")
		}
	}
	set("8")
	await(false)
}
