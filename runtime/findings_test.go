package runtime_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// codes are those of what a limiter has found, with their rules.
func codes(l *runtime.Limiter) (found []string) {
	for _, f := range l.Findings() {
		found = append(found, strings.TrimSpace(f.Code+" "+f.Rule))
	}
	return found
}

// wantFound wants a limiter to have found certain things, each with a text, a remedy and a time,
// and to have logged each once.
func wantFound(t *testing.T, l *runtime.Limiter, out *lines, want ...string) {
	t.Helper()
	same(t, "findings", want, codes(l))
	for _, f := range l.Findings() {
		if f.Text == "" || f.Help == "" || f.Since.IsZero() {
			t.Errorf("incomplete: %+v", f)
		}
		if n := strings.Count(out.String(), "code="+f.Code+" "); n != 1 {
			t.Errorf("%s was logged %d times:\n%s", f.Code, n, out)
		}
	}
}

// TestOptionsThatCannotHold wants a panic, with the option's name, where one that is declared
// could have no effect.
func TestOptionsThatCannotHold(t *testing.T) {
	on := func() bool { return true }
	for name, declare := range map[string]func(){
		"WithEnabled": func() { runtime.New(nil, quiet, runtime.WithEnabled(on), runtime.WithEnabled(on)) },
		"WithProcessCap": func() {
			runtime.New(nil, quiet, runtime.WithProcessCap(perHour(1)), runtime.WithProcessCap(perHour(2)))
		},
		"WithOverrides": func() { runtime.New(nil, quiet, overridden(runtime.Overrides{}), overridden(runtime.Overrides{})) },
		"WithReplicas":  func() { runtime.WithReplicas(0) },
		"WithRefusals":  func() { runtime.WithRefusals(time.Hour, []byte("")) },

		"WithRefusals(-1m0s)":    func() { runtime.WithRefusals(-time.Minute, nil) },
		"WithRefusals(192h0m0s)": func() { runtime.WithRefusals(8*24*time.Hour, nil) },
		"WithRefusals(1m30s)":    func() { runtime.WithRefusals(90*time.Second, nil) },

		"WithLocalKeys":   func() { runtime.WithLocalKeys(-3) },
		"WithTimeout":     func() { runtime.WithTimeout(50) },
		"WithMemoryWatch": func() { runtime.WithMemoryWatch(80, time.Minute) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, name) {
					t.Errorf("%s: panicked with %q", name, text)
				}
			}()
			declare()
		}()
	}
}

// TestTwoStores makes two stores on one client: the second one is told, unless nobody uses the first.
func TestTwoStores(t *testing.T) {
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: "127.0.0.1:1"}))
	defer client.Close()
	open := func(store *runtime.RedisStore) *runtime.Limiter { return runtime.New(store, quiet) }
	store := runtime.NewRedisStore(client)
	first, also := open(store), open(store)
	same(t, "one store", nil, append(codes(first), codes(also)...))
	second := open(runtime.NewRedisStore(client))
	same(t, "two stores", []string{"two_stores"}, codes(second))
	ok(t, errors.Join(first.Close(), also.Close()))
	third := open(runtime.NewRedisStore(client))
	same(t, "the first is not used", nil, codes(third))
}
