package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// A backend is the Redis that the service uses: a server at a given address, or a
// small one inside this process.
type backend struct {
	client   *redis.Client
	about    string
	embedded *miniredis.Miniredis // nil for a server of somebody else's; keys of it stay until it ends
	closers  []func()
}

func openBackend(addr string, timeout time.Duration) (*backend, error) {
	if addr != "" {
		return &backend{client: newClient(addr, timeout), about: addr + ", from REDIS_ADDR"}, nil
	}
	server, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("start a redis in this process: %w (REDIS_ADDR=host:port uses another one)", err)
	}
	return &backend{
		client:   newClient(server.Addr(), timeout),
		about:    "a small one in this process; REDIS_ADDR=host:port uses yours",
		embedded: server,
	}, nil
}

func (b *backend) close() {
	for _, closer := range b.closers {
		closer()
	}
	_ = b.client.Close()
	if b.embedded != nil {
		b.embedded.Close()
	}
}

// newClient returns a client with the options that suit a limiter whose calls
// wait for a timeout: it must not give up sooner.
func newClient(addr string, timeout time.Duration) *redis.Client {
	return redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: addr, ReadTimeout: max(timeout, time.Second)}))
}

// quietGoRedis sends go-redis's own log to the debug level of the first logger that it is
// given. go-redis writes a line for every failed dial, so one for every call while Redis
// is away. The limiter reports that once a second. Its logger may not be changed while
// there are clients.
func quietGoRedis(logger *slog.Logger) {
	quiet.Do(func() { redis.SetLogger(debugLog{logger}) })
}

var quiet sync.Once

type debugLog struct{ *slog.Logger }

func (l debugLog) Printf(ctx context.Context, format string, args ...any) {
	if l.Enabled(ctx, slog.LevelDebug) {
		l.DebugContext(ctx, "go-redis: "+fmt.Sprintf(format, args...))
	}
}

// refusedAddr returns an address at which nothing listens.
func refusedAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}
