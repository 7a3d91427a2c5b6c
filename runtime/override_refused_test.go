package runtime_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A line in the log stays short, whatever the names are.
func TestOverridesLogIsShort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var out lines
		_, board := following(t, time.Second, out.Logger())
		long := runtime.Overrides{Rules: map[string]rule.Override{}}
		for i := range 100 {
			long.Rules[fmt.Sprint(i, strings.Repeat("x", 10_000))] = rule.Override{}
		}
		board.set(long, nil)
		time.Sleep(2 * time.Minute)
		long.Rules = maps.Clone(long.Rules) // the other is the limiter's to read
		long.Rules[strings.Repeat("x", 10_000)] = rule.Override{Max: new(int64(-1))}
		board.put(long)
		if n := strings.Count(out.String(), "\n"); n != 3 || len(out.String()) > n*1500 {
			t.Errorf("%d lines of %d bytes", n, len(out.String()))
		}
	})
}
