package runtime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
)

func TestLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var out lines
		limiter := runtime.New(runtime.NewMemoryStore(), out.Logger())
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1}
		other := &runtime.Rule{Name: "o", Prefix: "o:", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow}
		// A flood of two rules for three seconds: 100 denials of each a second.
		for range 300 {
			for range 2 {
				limiter.Take(t.Context(), rule.Limit(key("secret")))
				limiter.Take(t.Context(), other.Limit(key("secret")))
			}
			time.Sleep(10 * time.Millisecond)
		}
		if strings.Contains(out.String(), "secret") {
			t.Errorf("the log names a key:\n%s", out.String())
		}
		equal(t, "lines of a rule in shadow mode", strings.Count(out.String(), "rule=o mode=shadow"), 3)
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
		same(t, "first line", want, first)
	})
}

func TestLogFailures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var out lines
		limiter := runtime.New(&brokenStore{}, out.Logger())
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Fail: runtime.FailLocal}
		for range 5 {
			limiter.Take(context.Background(), rule.Limit(key("secret")))
		}
		time.Sleep(time.Second)
		limiter.Take(context.Background(), rule.Limit(runtime.NewKey().AddInvalid("req is nil")))
		want := `level=WARN msg="rate limit not decided by its store" code=undecided rule=r fail=local class=other error="an error of type *errors.errorString, whose text may be private"
level=INFO msg="call over its rate limit" rule=r mode=enforce limit=1 cost=1 retry_after=1h0m0s source=local
level=WARN msg="rate limit not decided by its store" code=undecided rule=r fail=local class=key error="invalid rate limit key: req is nil" skipped=4
`
		same(t, "log", want, out.String())
	})
}
