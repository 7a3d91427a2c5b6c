package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/scratch"
)

var policyModule = map[string]string{
	"go.mod":           "module example.com/m\n\ngo 1.26.0\n",
	"limits/limits.go": "package limits\n\n//ratelimit:policy name=api window=2*unit max=600 storage=packed\n//ratelimit:policy name=free rate=5/s\n\nconst unit = day / 24\n",
	"limits/day.go":    "package limits\n\nimport \"time\"\n\nconst day = 24 * time.Hour\n",
	"orders/orders.go": "package orders\n\n//ratelimit:import \"example.com/m/limits\"\n\ntype Orders interface {\n\t//ratelimit:use=limits.api key=#tenant\n\tList(tenant string) error\n\t//ratelimit:use=limits.api key=#tenant cost=5\n\tExport(tenant string) error\n}\n",
	"users/users.go":   "package users\n\n//ratelimit:import shared \"example.com/m/limits\"\n\n//ratelimit:use=shared.api key=#tenant\ntype Users interface {\n\tGet(tenant string) error\n}\n",
}

// The list says which policies there are and what uses them.
func TestListPolicies(t *testing.T) {
	t.Parallel()
	dir := writeModule(t, policyModule)
	expect(t, dir, 0, `POSITION            RULE         LIMIT       KEY
limits/limits.go:3  limits.api   600 per 2h  (policy of orders.Orders.List, orders.Orders.Export, users.Users)
limits/limits.go:4  limits.free  5 per 1s    (policy, unused)
orders/orders.go:6  limits.api   600 per 2h  #tenant
orders/orders.go:8  limits.api   600 per 2h  #tenant
users/users.go:5    limits.api   600 per 2h  #tenant
`, "list", "./...")
	expect(t, dir, 0, `POSITION          RULE        LIMIT       KEY
users/users.go:5  limits.api  600 per 2h  #tenant
`, "list", "./users")

	code, out, errs := rategen(dir, "list", "-json", "./...")
	if code != 0 || errs != "" {
		t.Fatal(code, errs)
	}
	var rules []map[string]any
	for line := range strings.Lines(out) {
		var rule map[string]any
		if err := json.Unmarshal([]byte(line), &rule); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	if diff := cmp.Diff(map[string]any{
		"file": "limits/limits.go", "line": 3.0, "column": 1.0, "package": "example.com/m/limits", "policy": true,
		"usedBy": []any{"orders.Orders.List", "orders.Orders.Export", "users.Users"}, "key": []any{},
		"name": "limits.api", "prefix": "rate_limit:limits.api:", "max": "600", "window": "2h0m0s", "algorithm": "sliding-log", "storage": "packed", "cost": "1", "mode": "enforce",
	}, rules[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if rules[2]["use"] != "limits.api" || rules[2]["name"] != "limits.api" || rules[4]["use"] != "shared.api" {
		t.Error(rules[2], rules[4])
	}
}

// A changed policy makes what uses it stale, in whatever package, recorded or not.
func TestChangedPolicy(t *testing.T) {
	t.Setenv("RATEGEN_CACHE", filepath.Join(t.TempDir(), "cache"))
	dir := writeModule(t, policyModule)
	for range 3 {
		expect(t, dir, 0, "", "./...")
		expect(t, dir, 0, "", "./users")
	}
	changed := strings.Replace(policyModule["limits/day.go"], "24 *", "48 *", 1)
	scratch.Write(t, filepath.Join(dir, "limits", "day.go"), changed)
	expect(t, dir, 1, "users/users_ratelimit.go: stale: run go generate\n", "-check", "./users")
	expect(t, dir, 1, "orders/orders_ratelimit.go: stale: run go generate\nusers/users_ratelimit.go: stale: run go generate\n", "-check", "./...")
}

// A policy that nothing uses is told in a package that has limits.
func TestUnusedPolicy(t *testing.T) {
	t.Parallel()
	dir := writeModule(t, map[string]string{
		"go.mod": module["go.mod"],
		"a.go":   module["a.go"] + "\n//ratelimit:policy name=api max=5\n",
	})
	expect(t, dir, 0, "a.go:8:25: warning: nothing uses the policy api: remove it, or write use=api in a directive [unused_policy]\n")
}

// A package may use a policy of one that imports it: nothing but its directives does.
func TestPolicyOfImporter(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"go.mod":         module["go.mod"],
		"app/app.go":     "package app\n\nimport \"example.com/m/store\"\n\n//ratelimit:policy name=api rate=5/s\n\ntype App interface {\n\tstore.Plain\n\t//ratelimit:use=api key=#id\n\tDo(id string) error\n}\n",
		"store/store.go": "package store\n\n//ratelimit:import \"example.com/m/app\"\n\ntype Plain interface{ Plain() }\n\ntype Store interface {\n\t//ratelimit:use=app.api key=#id\n\tGet(id string) error\n}\n",
	}
	dir := writeModule(t, files)
	expect(t, dir, 0, "app/app_ratelimit.go: wrote\nstore/store_ratelimit.go: wrote\n", "-v", "./...")
	expect(t, dir, 0, "store/store_ratelimit.go: unchanged\n", "-v", "./store")
}
