package main

import (
	"fmt"
	"net/http"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratepage"
)

// handler serves the page at /limits/ and the metrics at /metrics, to this machine.
func handler(page *ratepage.Page, registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/limits/", http.StripPrefix("/limits", page))
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.Handle("/{$}", http.RedirectHandler("/limits/", http.StatusFound))
	return local(mux)
}

// A backend is the Redis that the service uses.
type backend struct {
	client   *redis.Client
	about    string
	embedded *miniredis.Miniredis // or nil
}

// openBackend returns the Redis at an address, or a small one inside this process.
func openBackend(addr string) (*backend, error) {
	b := &backend{about: addr + ", from REDIS_ADDR"}
	if addr == "" {
		var err error
		if b.embedded, err = miniredis.Run(); err != nil {
			return nil, fmt.Errorf("start a redis in this process: %w (REDIS_ADDR=host:port uses another one)", err)
		}
		addr, b.about = b.embedded.Addr(), b.embedded.Addr()+", inside this process"
	}
	b.client = redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: addr}))
	return b, nil
}

func (b *backend) close() {
	_ = b.client.Close()
	if b.embedded != nil {
		b.embedded.Close()
	}
}
