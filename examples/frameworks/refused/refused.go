// Package refused has limiters for tests of what they refuse.
package refused

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// Limiter returns a limiter that counts in memory.
func Limiter(t *testing.T, options ...runtime.Option) *runtime.Limiter {
	t.Helper()
	limiter := runtime.New(runtime.NewMemoryStore(), options...)
	t.Cleanup(func() {
		if err := limiter.Close(); err != nil {
			t.Error(err)
		}
	})
	return limiter
}

// Down returns a limiter whose Redis is gone, and whose limits then refuse all calls.
func Down(t *testing.T, options ...runtime.Option) *runtime.Limiter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: gone, MaxRetries: -1, DialerRetries: 1})
	limiter := runtime.New(runtime.NewRedisStore(client), append(options, runtime.WithFailurePolicy(runtime.FailClosed))...)
	t.Cleanup(func() {
		if err := errors.Join(limiter.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
	return limiter
}

// NoAddress checks that a text for clients has nothing of the network in it.
func NoAddress(t *testing.T, text string) {
	t.Helper()
	for _, private := range []string{"127.0.0.1", "dial", "connect", "redis", "tcp"} {
		if strings.Contains(strings.ToLower(text), private) {
			t.Errorf("a client reads %q", text)
		}
	}
}
