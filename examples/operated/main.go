// Operated is a service under load as its operators see it: customers call it, some of
// them too often; a page shows its limits, metrics are there for Prometheus, and
// limits may be changed while it runs.
//
//	go run .
//
// It needs no Redis, since it brings a small one; with REDIS_ADDR=host:port it uses
// that one. Open the page that it names, and change a limit there, or with ratectl as
// docs/operating.md says: what changes limits is a hash in Redis.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rategen/rategen/examples/operated/orders"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/ratepage"
	"github.com/rategen/rategen/runtime/rateprom"
)

// overrides is the key of the hash with the limits that are changed.
const overrides = "operated:limits"

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` of the page and of the metrics")
	length := flag.Duration("for", 0, "how `long` it runs; 0: until it is interrupted")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "operated: it takes no arguments, only flags: %q\n", flag.Args())
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if *length > 0 {
		ctx, stop = context.WithTimeout(ctx, *length)
	}
	err := run(ctx, *listen, os.Getenv("REDIS_ADDR"), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "operated:", err)
		os.Exit(1)
	}
}

// run serves the page and the metrics until ctx ends.
func run(ctx context.Context, listen, redisAddr string, out io.Writer) error {
	backend, err := openBackend(redisAddr)
	if err != nil {
		return err
	}
	defer backend.close()
	quiet := slog.New(slog.DiscardHandler) // the page and the metrics say it
	editor := override.NewEditor(backend.client, overrides)
	page := ratepage.New(ratepage.WithPlainKeys(), ratepage.WithLogger(quiet), ratepage.WithActions(everybody, editor))
	registry := prometheus.NewRegistry()
	metrics, err := rateprom.Observer(registry)
	if err != nil {
		return err
	}
	limiter := runtime.New(runtime.NewRedisStore(backend.client), runtime.WithLogger(quiet),
		runtime.WithOverrides(override.Redis(backend.client, overrides), time.Second),
		runtime.WithObserver(page.Observer()), runtime.WithObserver(metrics))
	defer func() { _ = limiter.Close() }()
	service := orders.NewRateLimitedService(orders.Shop{}, limiter)

	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("%w: -listen names another address", err)
	}
	server := &http.Server{Handler: handler(page, registry), ReadHeaderTimeout: 10 * time.Second}
	server.RegisterOnShutdown(page.Close)
	var running sync.WaitGroup
	var served error
	ctx, cancel := context.WithCancel(ctx)
	running.Go(func() {
		defer cancel()
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			served = err
		}
	})
	fmt.Fprintf(out, "redis    %s\npage     http://%s/limits/\nmetrics  http://%[2]s/metrics\n\n", backend.about, l.Addr())
	for _, c := range customers {
		running.Go(func() { c.call(ctx, service) })
	}
	running.Go(func() { guess(ctx, service) })
	<-ctx.Done()
	ending, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	err = server.Shutdown(ending)
	cancel()
	running.Wait()
	return errors.Join(served, err)
}

// local keeps out who has come by a foreign name, from looking too: the service listens
// to its own machine alone, and a site of somebody else's may have its name lead here.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if _, notAddress := netip.ParseAddr(host); err != nil || notAddress != nil && host != "localhost" {
			http.Error(w, "open the page by its address, with the port", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// everybody who has come past local may change limits.
func everybody(*http.Request, ratepage.Action) (string, error) { return "you", nil }
