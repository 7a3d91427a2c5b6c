// Package onminiredis runs the suite of stores on miniredis. It is not in the directory
// of runtime, since the modules that the tests of a package import are listed in the
// go.sum of everybody who imports it.
package onminiredis

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
)

// TestStore moves the clock of miniredis by hand, and has it expire keys by that.
func TestStore(t *testing.T) {
	t.Parallel()
	documents.RunSeldom(t, func(t *testing.T) documents.Subject {
		server := miniredis.RunT(t)
		now := time.Date(2100, time.January, 1, 0, 0, 0, 123456000, time.UTC)
		latest := now
		server.SetTime(now)
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { _ = client.Close() })
		return documents.Subject{
			// Every call is to ask Redis: refusals are remembered by the process's clock.
			Store: runtime.NewRedisStore(client, runtime.WithTimeout(20*time.Second), runtime.WithRefusalMemory(0)),
			Now:   func() int64 { return now.UnixMicro() },
			Exact: true,
			Slow:  true, // the interpreter of Lua is written in Go, and compiles the script for each call
			Advance: func(d time.Duration) {
				now = now.Add(d)
				server.SetTime(now)
				if now.After(latest) {
					// It does not live longer when the clock steps back.
					server.FastForward(now.Sub(latest))
					latest = now
				}
			},
		}
	})
}
