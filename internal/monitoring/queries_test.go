package main

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

// everything are metrics that a program has only after some event.
var everything = []string{
	"rategen_failures_total", "rategen_redis_memory_used_bytes", "rategen_adaptive_factor", "rategen_permits_in_flight", "rategen_thresholds_total",
}

// panelQueries returns the queries of the dashboard for all jobs and rules, by panel,
// with rates over a range.
func panelQueries(rateOver string) map[string][]string {
	queries := map[string][]string{}
	for _, row := range rows {
		for _, p := range row.panels {
			for _, q := range p.queries {
				queries[p.title] = append(queries[p.title], strings.NewReplacer("$job", ".*", "$rule", ".*", window, "["+rateOver+"]").Replace(q.expr))
			}
		}
	}
	return queries
}

// alertQueries returns the expressions of the alerts by name.
func alertQueries(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Expr        string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			queries[rule.Alert] = rule.Expr
			const page = "https://github.com/rategen/rategen/blob/main/docs/operating.md#"
			if got, want := rule.Annotations["runbook_url"], page+strings.ToLower(rule.Alert); got != want {
				t.Errorf("%s: the runbook is %s, want %s", rule.Alert, got, want)
			}
			if rule.Annotations["summary"] == "" {
				t.Errorf("%s has no summary", rule.Alert)
			}
		}
	}
	if len(queries) == 0 {
		t.Fatal("no alerts")
	}
	return queries
}

// TestQueriesNameWhatIsExported checks every query of the dashboard and of the alerts
// against a scrape of a running program: each metric is there, with these labels and
// values.
func TestQueriesNameWhatIsExported(t *testing.T) {
	all := scrape(t, startApp(t), everything...)
	for panel, queries := range panelQueries("5m") {
		for _, expr := range queries {
			if err := check(expr, all); err != nil {
				t.Errorf("panel %s: %v in %s", panel, err, expr)
			}
		}
	}
	for alert, expr := range alertQueries(t) {
		if err := check(expr, all); err != nil {
			t.Errorf("alert %s: %v in %s", alert, err, expr)
		}
	}
	for _, wrong := range []string{
		"up", "rate(rategen_decision_total[5m])", `rategen_decisions_total{verdict="refused"}`, `rategen_decisions_total{key="x"}`,
		"sum by (class) (rategen_decisions_total)", `rategen_decisions_total{verdict!~".*"}`,
	} {
		if check(wrong, all) == nil {
			t.Errorf("nothing is wrong with %s", wrong)
		}
	}
}

// tableRow is a row of the table of docs/metrics.md.
var tableRow = regexp.MustCompile("(?m)^\\| `(rategen_\\w+)` \\| `[a-z._]+` \\|([^|]*)\\|")

// TestDocumentation compares the table of docs/metrics.md with a scrape: the same
// metrics, with the same labels.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented, exported := map[string]string{}, map[string]string{}
	for _, found := range tableRow.FindAllStringSubmatch(string(page), -1) {
		labels := strings.Split(strings.Trim(strings.ReplaceAll(found[2], "`", ""), " "), ", ")
		slices.Sort(labels)
		documented[found[1]] = strings.Join(labels, ",")
	}
	for _, s := range scrape(t, startApp(t), everything...) {
		name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(s.name, "_bucket"), "_sum"), "_count")
		exported[name] = strings.Join(slices.Sorted(maps.Keys(s.labels)), ",")
	}
	if diff := cmp.Diff(exported, documented); diff != "" {
		t.Errorf("exported (-) and documented (+):\n%s", diff)
	}
}

// TestDashboard wants the file to be what the program writes.
func TestDashboard(t *testing.T) {
	file, err := os.ReadFile("../../docs/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, dashboard()) {
		t.Error("docs/monitoring/dashboard.json is not up to date: run go generate")
	}
}
