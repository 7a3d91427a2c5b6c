package rateprom_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateprom"
)

// Metrics of a limiter, and what a scrape says of its refusals.
func ExampleObserver() {
	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	observer, err := rateprom.Observer(registry)
	if err != nil {
		panic(err)
	}
	limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithObserver(observer))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{}) // mount it at /metrics

	search := &runtime.Rule{Name: "search", Window: time.Minute, Max: 2}
	for range 5 {
		_, _ = limiter.Take(context.Background(), search.Limit(runtime.NewKey().AddString("ann")))
	}
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(response.Body.String()) {
		if strings.Contains(line, `source="store",verdict="admitted"`) || strings.Contains(line, `source="store",verdict="refused"`) {
			fmt.Print(line)
		}
	}
	// Output:
	// rategen_decisions_total{rule="search",source="store",verdict="admitted"} 2
	// rategen_decisions_total{rule="search",source="store",verdict="refused"} 3
}
