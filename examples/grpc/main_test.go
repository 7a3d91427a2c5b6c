package main

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/leaks"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// The story goes as the documentation tells it, in memory and with a Redis.
func TestStory(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) runtime.Store{
		"memory": func(*testing.T) runtime.Store { return runtime.NewMemoryStore() },
		"redis": func(t *testing.T) runtime.Store {
			return runtime.NewRedisStore(redistest.Start(t).Client(t), runtime.WithTimeout(10*time.Second))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := run(t.Context(), open(t), &out); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{
				`(?m)^call \d+  the old lighthouse\n        header ratelimit: "RouteGuide\.GetFeature";r=2;t=2\n        header ratelimit-policy: "RouteGuide\.GetFeature";q=3;w=3$`,
				`(?m)^call \d+  rpc error: code = ResourceExhausted desc = too fast, have a cup of tea$`,
				`trailer ratelimit: "RouteGuide\.GetFeature";r=0;t=\d\n        trailer ratelimit-policy: "RouteGuide\.GetFeature";q=3;w=3\n        trailer grpc-retry-pushback-ms: \d+\n`,
				`ErrorInfo    RATE_LIMIT_EXCEEDED of routeguide.RouteGuide\n        QuotaFailure RouteGuide\.GetFeature, 3: rate limit exceeded\n        RetryInfo    `,
				`(?m)^call \d+  the tea house, 2 attempts, after `,
				`(?m)^stream 1  3 features\nstream 2  1 features, then rpc error: code = ResourceExhausted desc = the map was read enough for now$`,
			} {
				if !regexp.MustCompile(want).Match(out.Bytes()) {
					t.Errorf("the story has no %s", want)
				}
			}
			if t.Failed() {
				t.Log(out.String())
			}
		})
	}
}
