package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/examples/service/employee"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/ratehttp"
	"github.com/rategen/rategen/runtime/rateprom"
)

// half scales every max by a half.
type half struct{}

func (half) Factor(runtime.Load) float64 { return 0.5 }

// startApp starts a program under load that has everything metrics tell of: a limited
// service on Redis, calls in flight and calls that wait, a lease, overrides that are
// rejected, cannot be read, or whose source panics, an adaptive rule, a handler that hides
// refusals, a peer that refuses calls, and another Redis that is away. It returns the
// address of its metrics.
func startApp(t *testing.T) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	observer, err := rateprom.Observer(registry)
	if err != nil {
		t.Fatal(err)
	}
	quiet := runtime.WithLogger(slog.New(slog.DiscardHandler))
	server, lost := redistest.Start(t), redistest.Start(t)
	lost.Kill()
	store := runtime.NewRedisStore(server.Client(t), runtime.WithTimeout(5*time.Second), runtime.WithMemoryWatch(0.8, time.Second))
	lostStore := runtime.NewRedisStore(lost.Client(t, func(o *redis.Options) { o.DialerRetries = 1 }))
	readings := 0
	overrides := runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
		if readings++; readings > 2 {
			switch readings % 3 {
			case 0:
				return runtime.Overrides{}, runtime.ErrInvalidOverrides
			case 1:
				return runtime.Overrides{}, errors.New("unreadable")
			}
			panic("unwell")
		}
		return runtime.Overrides{Rules: map[string]runtime.Override{"shop.List": {Mode: new(runtime.ModeShadow)}}}, nil
	})
	limiter := runtime.New(store, quiet, runtime.WithObserver(observer), runtime.WithOverrides(overrides, 100*time.Millisecond))
	away := runtime.New(lostStore, quiet, runtime.WithObserver(observer))

	export := &runtime.Rule{Name: "shop.Export", Window: time.Minute, Max: 2, Algorithm: runtime.Concurrency}
	list := &runtime.Rule{Name: "shop.List", Window: time.Minute, Max: 20}
	search := &runtime.Rule{Name: "shop.Search", Window: time.Second, Max: 100_000, Algorithm: runtime.TokenBucket, Adaptive: half{}}
	queue := &runtime.Rule{Name: "shop.Mail", Window: time.Second, Max: 10, Algorithm: runtime.LeakyBucket, Wait: time.Second}
	hot := &runtime.Rule{Name: "shop.Hot", Window: 24 * time.Hour, Max: 900_000, Algorithm: runtime.SlidingCounter, Lease: 10 * time.Second}
	budget := &runtime.Rule{Name: "shop.Budget", Period: runtime.Month, Max: 10, Algorithm: runtime.FixedWindow}
	open := &runtime.Rule{Name: "away.Open", Window: time.Second, Max: 5}
	closed := &runtime.Rule{Name: "away.Closed", Window: time.Second, Max: 5, Fail: runtime.FailClosed}
	local := &runtime.Rule{Name: "away.Local", Window: time.Second, Max: 5, Fail: runtime.FailLocal}
	limiter.Register(export, list, search, queue, hot, budget)
	away.Register(open, closed, local)
	service := employee.NewRateLimitedEmployeeService(employee.NewDirectory(), limiter)

	ctx, stop := context.WithCancel(context.Background())
	var load sync.WaitGroup
	held, err := limiter.Take(ctx, export.Limit(nil).WithCost(2))
	if err != nil {
		t.Fatal(err)
	}
	load.Go(func() {
		for ctx.Err() == nil {
			_, _ = service.GetByID(ctx, "1001")
			for _, rule := range []*runtime.Rule{export, list, search, budget} {
				_, _ = limiter.Take(ctx, rule.Limit(nil))
			}
			for _, rule := range []*runtime.Rule{open, closed, local} {
				_, _ = away.Take(ctx, rule.Limit(nil))
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	for i := range 3 {
		load.Go(func() {
			for ctx.Err() == nil {
				calling, leave := context.WithCancel(ctx)
				if i == 0 { // it does not wait for long
					time.AfterFunc(50*time.Millisecond, leave)
				}
				_, _ = limiter.Take(calling, queue.Limit(nil))
				leave()
			}
		})
	}
	load.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if _, _ = limiter.Take(ctx, hot.Limit(nil)); i%100 == 99 {
				time.Sleep(20 * time.Millisecond)
			}
		}
	})
	handler := ratehttp.Middleware()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := service.GetByID(r.Context(), "1001"); err != nil {
			http.Error(w, "out of order", http.StatusInternalServerError)
		}
	}))
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	payments, err := rateclient.New(limiter, []rateclient.Peer{{
		Pattern: "127.0.0.1/", Wait: time.Minute,
		Limits: []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "shop.Payments", Window: time.Second, Max: 100}}},
	}}, rateclient.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	load.Go(func() {
		for ctx.Err() == nil {
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			time.Sleep(20 * time.Millisecond)
		}
	})
	load.Go(func() {
		for ctx.Err() == nil {
			call, _ := http.NewRequestWithContext(ctx, http.MethodGet, refusing.URL, nil)
			if response, err := payments.RoundTrip(call); err == nil {
				_ = response.Body.Close()
			}
		}
	})
	web := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(func() {
		stop()
		load.Wait()
		refusing.Close()
		web.Close()
		_ = limiter.Refund(context.Background(), held)
		_ = limiter.Close()
		_ = away.Close()
		_ = store.Close()
		_ = lostStore.Close()
	})
	return web.Listener.Addr().String()
}

// scrape reads the metrics of a program once they hold everything that is expected.
func scrape(t *testing.T, addr string, expected ...string) []series {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		response, err := http.Get("http://" + addr + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		all, err := readSeries(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		missing := ""
		for _, name := range expected {
			if !contains(all, name) {
				missing = name
			}
		}
		if missing == "" {
			return all
		}
		if time.Now().After(deadline) {
			t.Fatalf("no series %s after a minute", missing)
		}
	}
}
