package runtime_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// Redis's clock steps back by an hour, or a replica is promoted whose clock is behind. An
// active key admits calls again at once, lives no longer for it, and the step is reported
// once.
func TestClockStepsBack(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	ctx := context.Background()
	subject := injected(t, client, nil)
	var log bytes.Buffer
	limiter := runtime.New(subject.Store, runtime.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	t.Cleanup(func() { _ = limiter.Close() })
	var limits []runtime.Limit
	for name, rule := range modelRules() {
		rule.Name, rule.Window, rule.Max, rule.Burst, rule.Wait = name, 10*time.Second, 10, 0, 0
		rule.Prefix = strings.ReplaceAll(t.Name()+":"+name, " ", "-") + ":"
		limits = append(limits, rule.Limit(nil))
	}
	admitted := func() (n int) {
		for _, limit := range limits {
			for range 10 {
				if _, err := limiter.Take(ctx, limit); err == nil {
					n++
				}
			}
		}
		return n
	}
	first := admitted()
	for _, step := range []struct {
		back            time.Duration
		admitted, lines int
	}{
		{90 * time.Millisecond, 0, 0},
		{time.Hour, first, 1},
	} {
		subject.Advance(-step.back)
		if n := admitted(); n != step.admitted {
			t.Errorf("%v back: %d of %d were admitted, want %d", step.back, n, first, step.admitted)
		}
		if n := strings.Count(log.String(), "clock of the rate limit store stepped back"); n != step.lines {
			t.Errorf("%v back: %d lines, want %d:\n%s", step.back, n, step.lines, &log)
		}
		keys, err := client.Keys(ctx, t.Name()+":*").Result()
		if err != nil || len(keys) == 0 {
			t.Fatal(keys, err)
		}
		for _, key := range keys {
			if lives := expireTime(ctx, client, key) - time.Duration(subject.Now())*time.Microsecond; lives > 12*time.Second {
				t.Errorf("%v back: %s lives for %v", step.back, key, lives)
			}
		}
	}
}
