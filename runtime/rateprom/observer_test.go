package rateprom_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateprom"
	"github.com/rategen/rategen/runtime/rule"
)

// values returns the values of a scrape by their series.
func values(text string) map[string]string {
	labels := map[string]string{}
	for line := range strings.Lines(text) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			labels[line[:i]] = strings.TrimSpace(line[i:])
		}
	}
	return labels
}

// TestSecondObserver wants limiters on one registerer to share its metrics, and those
// on wrapped ones to have their own.
func TestSecondObserver(t *testing.T) {
	registry := prometheus.NewRegistry()
	wrapped := func(name string) prometheus.Registerer {
		return prometheus.WrapRegistererWith(prometheus.Labels{"limiter": name}, registry)
	}
	first := observer(t, wrapped("internal"))
	if observer(t, wrapped("internal")) != first {
		t.Error("a second observer for the same registerer")
	}
	rule := &runtime.Rule{Name: "a", Window: time.Hour, Max: 10, Algorithm: runtime.Concurrency}
	var limiters []*runtime.Limiter
	for _, o := range []*observe.Observer{first, first, observer(t, wrapped("public"))} {
		limiters = append(limiters, runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithObserver(o)))
	}
	for _, l := range limiters {
		l.Register(rule)
		d, err := l.Take(t.Context(), rule.Limit(nil))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Refund(context.Background(), d) }()
	}
	got := values(scrape(t, registry, text))
	for series, want := range map[string]string{
		`rategen_permits_in_flight{limiter="internal",rule="a"}`: "2", `rategen_permits_in_flight{limiter="public",rule="a"}`: "1",
		`rategen_decisions_total{limiter="internal",rule="a",source="store",verdict="admitted"}`: "2",
		`rategen_rule_limit{limiter="internal",rule="a"}`:                                        "10",
	} {
		if got[series] != want {
			t.Errorf("%s is %q, want %s", series, got[series], want)
		}
	}
}

// TestErrors wants an error that says what is wrong, and no panic.
func TestErrors(t *testing.T) {
	if _, err := rateprom.Observer(nil); err == nil || !strings.Contains(err.Error(), "no registerer") {
		t.Errorf("without a registerer: %v", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rategen_decisions_total", Help: "?"}, []string{"user"}))
	if _, err := rateprom.Observer(registry); err == nil || !strings.Contains(err.Error(), "rategen_decisions_total") {
		t.Errorf("where the name is taken: %v", err)
	}
}

// TestHostileNames gives rules all kinds of names, while others scrape.
func TestHostileNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	o := observer(t, registry)
	limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithObserver(o))
	var scrapes sync.WaitGroup
	for range 2 {
		scrapes.Go(func() {
			for range 50 {
				if _, err := registry.Gather(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i, name := range []string{
		"", "other", "\xff", "\xfe", "a\nb", `a"b\`, "a}b{c=\"d\"}", "\x00", "规则", "le", "__name__",
		strings.Repeat("é", 5000), strings.Repeat("x", 1<<20) + "1", strings.Repeat("x", 1<<20) + "2", strings.Repeat("\xc3", 300),
	} {
		if i%2 == 0 {
			limiter.Register(&runtime.Rule{Name: name, Prefix: "p", Window: time.Second, Max: 1, Algorithm: runtime.Concurrency})
		}
		o.Decision(t.Context(), observe.DecisionEvent{Rule: name, Source: rule.SourceStore, Cost: 1, Limit: 1})
		o.Failure(t.Context(), observe.FailureEvent{Rule: name, Class: 200, Policy: 100})
		o.Breaker(observe.BreakerEvent{Open: true, Node: name})
	}
	o.Decision(t.Context(), observe.DecisionEvent{Rule: "le", Verdict: 200, Source: 100, Cost: -1, Limit: -1, Remaining: -1, Latency: -1})
	scrapes.Wait()
	got := values(scrape(t, registry, text))
	for series, want := range map[string]string{
		`rategen_near_limit_total{rule="` + "\uFFFD" + `"}`:                 "3",
		`rategen_near_limit_total{rule="` + strings.Repeat("x", 256) + `"}`: "2",
		`rategen_near_limit_total{rule="a\nb"}`:                             "1",
		`rategen_near_limit_total{rule="a\"b\\"}`:                           "1",
		`rategen_breaker_open{node="other"}`:                                "1",
	} {
		if got[series] != want {
			t.Errorf("%s is %q, want %s", series, got[series], want)
		}
	}
}
