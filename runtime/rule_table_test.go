package runtime_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A program that makes a rule for every call does not fill its memory with
// them, nor its log.
func TestRulesWithoutEnd(t *testing.T) {
	t.Parallel()
	var out lines
	limiter := runtime.New(&brokenStore{}, runtime.WithLogger(slog.New(slog.NewTextHandler(&out, nil))),
		runtime.WithFailurePolicy(runtime.FailLocal), runtime.WithReplicas(2))
	defer limiter.Close()
	for i := range int64(12_000) {
		rule := &runtime.Rule{
			Name: "r", Window: time.Hour, Max: 10, Burst: 2, Algorithm: runtime.TokenBucket, Adaptive: always(1),
		}
		limit := rule.Limit(runtime.NewKey().AddInt(i))
		limiter.Measure(rule, time.Now())
		for turn := range 2 {
			if _, err := limiter.Take(context.Background(), limit); (err == nil) != (turn == 0) {
				t.Fatalf("rule %d, call %d: %v", i, turn, err)
			}
		}
		if f := limiter.Factor(rule); f != 1 {
			t.Fatalf("rule %d: factor %v", i, f)
		}
	}
	if n := limiter.KnownRules(); n != 10_000 {
		t.Errorf("%d rules are kept in mind, want 10000", n)
	}
	// Each known rule has its two lines, the others share theirs.
	if n := strings.Count(out.String(), "\n"); n > 2*10_000+1000 {
		t.Errorf("%d lines in the log", n)
	}
}
