package ratehttp_test

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/dunglas/httpsfv"

	"github.com/rategen/rategen/internal/testkit/leaks"
	"github.com/rategen/rategen/runtime"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// silent keeps the log out of a test's output.
var silent = slog.New(slog.DiscardHandler)

func newLimiter(opts ...runtime.Option) *runtime.Limiter {
	return runtime.New(runtime.NewMemoryStore(), append(opts, runtime.WithLogger(silent))...)
}

// An item is one policy in RateLimit-Policy or RateLimit, as a parser that is not
// ours has read it.
type item struct {
	Name   string
	Params map[string]any
}

// parse reads a field, and fails the test if it is not a List of Strings.
func parse(t testing.TB, h http.Header, field string) (items []item) {
	t.Helper()
	lines := h.Values(field)
	if len(lines) == 0 {
		return nil
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		t.Fatalf("%s %q: %v", field, lines, err)
	}
	for _, m := range list {
		member, ok := m.(httpsfv.Item)
		if !ok {
			t.Fatalf("%s %q has a member that is no Item", field, lines)
		}
		name, ok := member.Value.(string)
		if !ok {
			t.Fatalf("%s %q has a member that is no String", field, lines)
		}
		it := item{name, map[string]any{}}
		for _, key := range member.Params.Names() {
			it.Params[key], _ = member.Params.Get(key)
		}
		items = append(items, it)
	}
	return items
}
