package runtime_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
)

// logger returns a logger that writes to the buffer without the time.
func logger(b *bytes.Buffer) runtime.Option {
	return runtime.WithLogger(slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
}

func TestLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ctx := context.Background()
		limiter := runtime.New(runtime.NewMemoryStore(), logger(&out))
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1}
		other := &runtime.Rule{Name: "o", Prefix: "o:", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow}
		// A flood of two rules for three seconds: 100 denials of each a second.
		for range 300 {
			for range 2 {
				limiter.Take(ctx, rule.Limit(key("secret")))
				limiter.Take(ctx, other.Limit(key("secret")))
			}
			time.Sleep(10 * time.Millisecond)
		}
		if strings.Contains(out.String(), "secret") {
			t.Errorf("the log names a key:\n%s", out.String())
		}
		var skipped []string
		lines := 0
		for line := range strings.Lines(out.String()) {
			if !strings.Contains(line, "rule=r ") {
				continue
			}
			lines++
			if _, n, ok := strings.Cut(line, "skipped="); ok {
				skipped = append(skipped, strings.TrimSpace(n))
			}
		}
		if diff := cmp.Diff([]string{"198", "199"}, skipped); diff != "" || lines != 3 {
			t.Errorf("%d lines of a rule, want 3; left out (-want +got):\n%s\n%s", lines, diff, out.String())
		}
		first, _, _ := strings.Cut(out.String(), "\n")
		want := `level=INFO msg="call over its rate limit" rule=r mode=enforce limit=1 cost=1 retry_after=1h0m0s source=store`
		if diff := cmp.Diff(want, first); diff != "" {
			t.Errorf("first line (-want +got):\n%s", diff)
		}
	})
}

// What a shadow limit would have denied is what one wants to know of it.
func TestLogShadow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		limiter := runtime.New(runtime.NewMemoryStore(), logger(&out))
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow}
		for range 2 {
			taken(t, limiter, rule.Limit(nil))
		}
		if !strings.Contains(out.String(), "mode=shadow") {
			t.Errorf("nothing about the denial: %q", out.String())
		}
	})
}

func TestLogFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		limiter := runtime.New(&brokenStore{}, logger(&out))
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Fail: runtime.FailLocal}
		for range 5 {
			limiter.Take(context.Background(), rule.Limit(key("secret")))
		}
		time.Sleep(time.Second)
		limiter.Take(context.Background(), rule.Limit(runtime.NewKey().AddInvalid("req is nil")))
		want := `level=WARN msg="rate limit not decided by its store" rule=r fail=local class=other error="an error of type *errors.errorString, whose text may be private"
level=INFO msg="call over its rate limit" rule=r mode=enforce limit=1 cost=1 retry_after=1h0m0s source=local
level=WARN msg="rate limit not decided by its store" rule=r fail=local class=key error="invalid rate limit key: req is nil" skipped=4
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}
