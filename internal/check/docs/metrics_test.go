package docs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/rategen/rategen/internal/ratetally"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// exported returns the labels of each metric by its name in Prometheus. With an exporter
// OpenTelemetry's metrics have these names, too.
func exported() map[string][]string {
	all := map[string][]string{}
	for _, f := range append(slices.Clone(ratetally.Families), ratetally.Duration) {
		name := strings.ReplaceAll(f.Name, ".", "_") + map[string]string{"s": "_seconds", "By": "_bytes"}[f.Unit]
		if f.Kind == ratetally.Counter {
			name += "_total"
		}
		all[name] = slices.Sorted(slices.Values(f.Labels))
	}
	return all
}

// TestMetricsPage compares the table of docs/metrics.md with what is exported: names, names
// of OpenTelemetry and labels.
func TestMetricsPage(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `(rategen_\\w+)` \\| `([a-z._]+)` \\|([^|]*)\\|")
	documented := map[string][]string{}
	for _, found := range row.FindAllStringSubmatch(content(t, "docs/metrics.md"), -1) {
		labels := strings.FieldsFunc(found[3], func(r rune) bool { return strings.ContainsRune("` ,", r) })
		documented[found[1]] = slices.Sorted(slices.Values(labels))
		if !slices.ContainsFunc(append(slices.Clone(ratetally.Families), ratetally.Duration), func(f *ratetally.Family) bool { return f.Name == found[2] }) ||
			!strings.HasPrefix(found[1], strings.ReplaceAll(found[2], ".", "_")) {
			t.Errorf("%s is not %s of OpenTelemetry", found[1], found[2])
		}
	}
	want := exported()
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Fatalf("metrics (-exported +documented):\n%s", diff)
	}
	for name, labels := range want {
		if !slices.Equal(labels, documented[name]) {
			t.Errorf("%s has the labels %v, and docs/metrics.md says %v", name, labels, documented[name])
		}
	}
}

var (
	selected = regexp.MustCompile(`\b(rategen_\w+)(\{[^}]*\})?`)
	matched  = regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"([^"]*)"`)
	grouped  = regexp.MustCompile(`\b(?:by|on|without|ignoring|group_left|group_right) *\(([^)]*)\)`)
)

// wrong says what is wrong with a query: a metric, a label or a value that there is not.
func wrong(expr string) error {
	metrics := exported()
	known := map[string]bool{"job": true, "instance": true, "le": strings.Contains(expr, "_bucket"), "policy": strings.Contains(expr, `"policy", "`)}
	found := selected.FindAllStringSubmatch(expr, -1)
	if len(found) == 0 {
		return fmt.Errorf("no metric of rategen's")
	}
	for _, s := range found {
		name := s[1]
		for _, end := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, end)
		}
		labels, ok := metrics[name]
		if !ok {
			return fmt.Errorf("no metric %s", s[1])
		}
		for _, label := range labels {
			known[label] = true
		}
		for _, m := range matched.FindAllStringSubmatch(s[2], -1) {
			if label := m[1]; label != "job" && !slices.Contains(labels, label) {
				return fmt.Errorf("%s has no label %s", s[1], label)
			}
			for _, value := range strings.Split(m[2], "|") {
				if of := values[m[1]]; of != nil && !slices.Contains(of, value) {
					return fmt.Errorf("no %s is %q", m[1], value)
				}
			}
		}
	}
	for _, g := range grouped.FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.FieldsFunc(g[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if !known[label] {
				return fmt.Errorf("no metric has the label %s", label)
			}
		}
	}
	return nil
}

// values are those of labels that have few.
var values = map[string][]string{
	"verdict":   names(observe.VerdictAdmitted, observe.VerdictRefused, observe.VerdictShadowRefused, observe.VerdictUnavailable, observe.VerdictNotCharged),
	"source":    names(rule.SourceStore, rule.SourceRecalled, rule.SourceLocal, rule.SourceFailure, rule.SourceLease),
	"algorithm": names(runtime.SlidingLog, runtime.SlidingCounter, runtime.FixedWindow, runtime.TokenBucket, runtime.LeakyBucket, runtime.Concurrency),
	"admitted":  {"true", "false"},
}

func names[T fmt.Stringer](all ...T) (names []string) {
	for _, v := range all {
		names = append(names, v.String())
	}
	return names
}

// Queries of the dashboard and of the alerts name metrics, labels and values that there are.
func TestQueries(t *testing.T) {
	queries := map[string]string{} // by place
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	limittest.OK(t, json.Unmarshal([]byte(content(t, "docs/monitoring/dashboard.json")), &dashboard))
	for _, p := range dashboard.Panels {
		for i, target := range p.Targets {
			queries[fmt.Sprintf("panel %s, query %d", p.Title, i+1)] = target.Expr
		}
	}
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	limittest.OK(t, yaml.Unmarshal([]byte(content(t, "docs/monitoring/alerts.yaml")), &alerts))
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			queries["alert "+rule.Alert] = rule.Expr
			const runbook = "https://github.com/rategen/rategen/blob/main/docs/operating.md#"
			if got := rule.Annotations["runbook_url"]; got != runbook+strings.ToLower(rule.Alert) || rule.Annotations["summary"] == "" {
				t.Errorf("%s: the runbook is %s, and the summary %q", rule.Alert, got, rule.Annotations["summary"])
			}
		}
	}
	if len(queries) < 40 {
		t.Errorf("only %d queries", len(queries))
	}
	for place, expr := range queries {
		if err := wrong(expr); err != nil {
			t.Errorf("%s: %v in %s", place, err, expr)
		}
	}
}
