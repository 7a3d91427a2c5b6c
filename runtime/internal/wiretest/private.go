package wiretest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/faults"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// caller is the part of a key that nobody is to read in an error, an event or a log.
const caller = "alice@example.com"

// Notes are the texts of log lines, events and errors.
type notes struct {
	mu    sync.Mutex
	texts bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.texts.Write(p)
}

// use has a store decide, then has something happen, and notes the errors of everything
// that asks the store. It returns how many calls of Take failed.
func (n *notes) use(t *testing.T, store *runtime.RedisStore, happens func()) (failed int) {
	limiter := runtime.New(store, runtime.WithFailurePolicy(runtime.FailClosed),
		runtime.WithLogger(slog.New(slog.NewTextHandler(n, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		runtime.WithObserver(&observe.Observer{
			Failure: func(_ context.Context, ev observe.FailureEvent) { fmt.Fprintf(n, "%+v\n", ev) },
			Memory:  func(ev observe.MemoryEvent) { fmt.Fprintf(n, "%+v\n", ev) },
		}))
	ctx, rule := t.Context(), &runtime.Rule{Name: "r", Prefix: "private:", Window: time.Minute, Max: 100}
	limit := rule.Limit(runtime.NewKey().AddString(caller))
	// A first call that connects may take longer than the store waits.
	limiter.Register(rule)
	if err := limiter.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	for try := 0; ; try++ { // machines are busy
		if _, err := limiter.Take(ctx, limit); err == nil {
			break
		} else if try == 20 {
			t.Fatal(err)
		}
	}
	happens()
	for range 10 {
		_, err := limiter.Take(ctx, limit)
		_, peeked := limiter.Peek(ctx, limit)
		if err != nil {
			failed++
		}
		fmt.Fprintln(n, err, peeked, limiter.Reset(ctx, limit))
	}
	fmt.Fprintln(n, limiter.Warm(ctx), bridge.StoreOf(store).Survey(ctx, bridge.LimiterOf(limiter).KeysOf(rule)), limiter.Close(), store.Close())
	return failed
}

// nothingPrivate: no text that leaves the process has a caller's key or the address of a
// server, whatever happens to servers.
func nothingPrivate(t *testing.T, open faults.Open) {
	check := func(t *testing.T, o *redis.UniversalOptions, happens func(), addrs ...string) {
		var n notes
		store := open(t, o, runtime.WithMemoryWatch(0.5, time.Millisecond))
		if failed := n.use(t, store, happens); failed == 0 {
			t.Error("no call failed")
		}
		private := []*regexp.Regexp{regexp.MustCompile(regexp.QuoteMeta(caller)), regexp.MustCompile(`127\.0\.0\.1`)}
		for _, addr := range addrs {
			_, port, _ := net.SplitHostPort(addr)
			private = append(private, regexp.MustCompile(":"+port+`\b`)) // a count of bytes is longer
		}
		for line := range strings.Lines(n.texts.String()) {
			for _, p := range private {
				if p.MatchString(line) {
					t.Errorf("%q is in: %.600s", p, line)
				}
			}
		}
	}
	for name, fault := range map[string]func(*faultproxy.Proxy){
		"refused": (*faultproxy.Proxy).Refuse,
		"silent":  (*faultproxy.Proxy).Stall,
		"cut":     (*faultproxy.Proxy).CutReplies,
		"lost":    (*faultproxy.Proxy).DropReplies,
		"reset":   (*faultproxy.Proxy).Reset,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := faultproxy.Start(t, server.Addr)
			check(t, &redis.UniversalOptions{Addrs: []string{proxy.Addr}}, func() { fault(proxy) }, server.Addr, proxy.Addr)
		})
	}
	for name, happens := range map[string]func(*testing.T, *redistest.Server){
		"no TLS any more":     func(_ *testing.T, s *redistest.Server) { s.Restart() },
		"another certificate": func(t *testing.T, s *redistest.Server) { s.Restart(); s.ServeTLS(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			o := &redis.UniversalOptions{Addrs: []string{server.Addr}, TLSConfig: server.ServeTLS(t)}
			check(t, o, func() { happens(t, server) }, server.Addr)
		})
	}
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		cluster := redistest.StartCluster(t)
		check(t, &redis.UniversalOptions{Addrs: cluster.Addrs()}, func() {
			for _, node := range cluster.Nodes {
				node.Kill()
			}
		}, cluster.Addrs()...)
	})
}
