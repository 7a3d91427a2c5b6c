package runtime_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

func TestLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var out lines
		limiter, rule := inMemory(out.Logger()), perHour(1)
		other := &runtime.Rule{Name: "o", Prefix: "o:", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow}
		// A flood of two rules for three seconds: 100 denials of each a second.
		for range 300 {
			for range 2 {
				limiter.Take(t.Context(), rule.Limit(key("secret")))
				limiter.Take(t.Context(), other.Limit(key("secret")))
			}
			time.Sleep(10 * time.Millisecond)
		}
		equal(t, "lines that name a key", strings.Count(out.String(), "secret"), 0)
		equal(t, "lines of a rule in shadow mode", strings.Count(out.String(), "rule=o mode=shadow"), 3)
		skipped := regexp.MustCompile(`rule=r .*?(?:skipped=(\d+))?\n`).FindAllStringSubmatch(out.String(), -1)
		if len(skipped) != 3 || skipped[0][1] != "" || skipped[1][1] != "198" || skipped[2][1] != "199" {
			t.Errorf("lines of a rule %q, want 3 of which the others skip 198 and 199", skipped)
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
			limiter.Take(t.Context(), rule.Limit(key("secret")))
		}
		time.Sleep(time.Second)
		limiter.Take(t.Context(), rule.Limit(runtime.NewKey().AddInvalid("req is nil")))
		want := `level=WARN msg="rate limit not decided by its store" code=undecided rule=r fail=local class=other error="an error of type *errors.errorString, whose text may be private"
level=INFO msg="call over its rate limit" rule=r mode=enforce limit=1 cost=1 retry_after=1h0m0s source=local
level=WARN msg="rate limit not decided by its store" code=undecided rule=r fail=local class=key error="invalid rate limit key: req is nil" skipped=4
`
		same(t, "log", want, out.String())
	})
}
