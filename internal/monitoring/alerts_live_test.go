package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rateprom"
)

// TestAlertsComeAndGo has a real Prometheus watch a program on a cluster, whose overrides
// are on a server of their own. Each fault fires its own alert and no other one of those,
// and when it is over the alert ends. Minutes of the alerts are seconds here.
func TestAlertsComeAndGo(t *testing.T) {
	t.Parallel()
	cluster, config := redistest.StartCluster(t), redistest.Start(t)
	registry := prometheus.NewRegistry()
	observer, err := rateprom.Observer(registry)
	if err != nil {
		t.Fatal(err)
	}
	quiet := runtime.WithLogger(slog.New(slog.DiscardHandler))
	store := runtime.NewRedisStore(cluster.Client(t, func(o *redis.ClusterOptions) { runtime.TuneRedis(o) }))
	limiter := runtime.New(store, quiet, runtime.WithObserver(observer),
		runtime.WithOverrides(override.Redis(config.Client(t), "limits"), 100*time.Millisecond))
	rule := &runtime.Rule{Name: "shop.Get", Window: time.Minute, Max: 1_000_000}
	limiter.Register(rule)
	ended := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Millisecond):
			}
			_, _ = limiter.Take(t.Context(), rule.Limit(runtime.NewKey().AddInt(int64(i%100))))
		}
	})
	web := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(func() {
		close(ended)
		load.Wait()
		web.Close()
		_ = limiter.Close()
		_ = store.Close()
	})

	text, err := os.ReadFile("../../docs/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	quick := filepath.Join(t.TempDir(), "alerts.yaml")
	if err := os.WriteFile(quick, regexp.MustCompile(`(\d)m\b`).ReplaceAll(text, []byte("${1}s")), 0o666); err != nil {
		t.Fatal(err)
	}
	addr := startPrometheus(t, web.Listener.Addr().String(), quick)
	const rejected, unread, breaker, undecided = "RategenOverridesRejected", "RategenOverridesUnread", "RategenBreakerOpen", "RategenUndecided"

	client := config.Client(t)
	set := func(value string) func() {
		return func() {
			if err := client.HSet(t.Context(), "limits", rule.Name, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	master := cluster.Master(cluster.Slot("{x}"))
	replica := cluster.Nodes[slices.Index(cluster.Nodes, master)+3]
	// A little while of grace lets alerts end that are due to the test's own load.
	awaitFiring(t, addr, nil)
	for _, fault := range []struct {
		name       string
		begin, end func()
		fires, may []string // may: as well
	}{
		{"overrides stall for 1.5 s", func() {
			config.Pause()
			time.Sleep(1500 * time.Millisecond)
			config.Resume()
			time.Sleep(5 * time.Second)
		}, func() {}, nil, nil},
		{"wrong overrides", set("max: ten"), set(`{"max":2000000}`), []string{rejected}, nil},
		{"overrides away", config.Pause, config.Resume, []string{unread}, nil},
		{"a master dies, and its replica is away", func() { replica.Pause(); master.Kill() }, replica.Resume, []string{breaker}, []string{undecided}},
	} {
		fault.begin()
		got := awaitFiring(t, addr, fault.fires)
		for _, alert := range got {
			if !slices.Contains(fault.fires, alert) && !slices.Contains(fault.may, alert) {
				t.Errorf("%s: %s fires", fault.name, alert)
			}
		}
		began := time.Now()
		fault.end()
		awaitFiring(t, addr, nil)
		t.Logf("%s: %v; calm after another %v", fault.name, got, time.Since(began))
	}
}

// awaitFiring waits until alerts fire, and returns all that do. Without any it waits until
// none does.
func awaitFiring(t *testing.T, addr string, wanted []string) []string {
	t.Helper()
	var last []string
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		var err error
		if last, err = firing(addr); err != nil {
			t.Fatal(err)
		}
		missing := slices.DeleteFunc(slices.Clone(wanted), func(alert string) bool { return slices.Contains(last, alert) })
		if len(missing) == 0 && (len(wanted) > 0 || len(last) == 0) {
			return last
		}
	}
	t.Fatalf("%q fire, want %q", last, wanted)
	return nil
}

// firing returns the names of the alerts that fire.
func firing(addr string) (names []string, err error) {
	response, err := http.Get("http://" + addr + "/api/v1/alerts")
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Data struct {
			Alerts []struct {
				Labels map[string]string
				State  string
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("alerts: %w", err)
	}
	for _, a := range answer.Data.Alerts {
		if name := a.Labels["alertname"]; a.State == "firing" && strings.HasPrefix(name, "Rategen") {
			names = append(names, name)
		}
	}
	return names, nil
}
