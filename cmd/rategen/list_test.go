package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/printed"
)

const listed = `package m

//ratelimit:max=1000 window=24h except=Name storage=packed
type Service interface {
	//ratelimit:key=#id window=10s max=5 prefix=rate_limit:emp: adaptive=memory message="查询太快啦，喝杯茶再来"
	GetByID(id string) error
	//ratelimit:key=#tenant.ID,clientIP(#tenant),#tenant.Region.Name max=#tenant.PerMinute algorithm=token-bucket burst=20 adaptive=cpu,latency
	//ratelimit:max=perDay window=1h30m mode=shadow name="服务的一个特别长的名字服务的一个特别长的名字" storage=packed
	Import(tenant *Tenant) error
	Name() string
}

const perDay = 10 * 10

type Tenant struct {
	ID        string
	PerMinute int
	Region    struct{ Name string }
}

func clientIP(*Tenant) string { return "" }
`

const listedOutcomes = `package out

type Model interface {
	//ratelimit:key=#user max=5 window=15m refund="#err == nil" block=1h
	LogIn(user string) error
	//ratelimit:max=10 algorithm=concurrency deny=busy(#err)
	//ratelimit:max=1000 algorithm=token-bucket cost=9 settle=#tokens
	Ask() (tokens int, err error)
}

func busy(err error) (int, error) { return 0, err }
`

func TestList(t *testing.T) {
	t.Parallel()
	dir := writeModule(t, map[string]string{
		"go.mod":                        module["go.mod"],
		"a.go":                          listed,
		"internal/deeply/nested/svc.go": "package nested\n\ntype S struct{}\n\n//ratelimit:key=#id algorithm=sliding-counter buckets=6x10 wait=1s\nfunc (S) Do(id string) error { return nil }\n",
		"none/none.go":                  "package none\n",
		"out/out.go":                    listedOutcomes,
	})
	code, out, errs := rategen(dir, "list", "./...")
	want := `POSITION            RULE                LIMIT                KEY
a.go:3              m.Service           1000 per 24h         (all callers)
a.go:5              m.Service.GetByID   5 per 10s, adaptive  #id
a.go:7              m.Service.Import    #tenant.PerMinute …  #tenant.ID,clientI…
a.go:8              …一个特别长的名字   100 per 1h30m, sha…  (all callers)
…y/nested/svc.go:5  nested.S.Do         100 per 1m, slidin…  #id
out/out.go:4        out.Model.LogIn     5 per 15m, block 1…  #user
out/out.go:6        out.Model.Ask       10 in flight         (all callers)
out/out.go:7        out.Model.Ask#2     1000 per 1m, token…  (all callers)
`
	if code != 0 || errs != "" {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	if !strings.Contains(out, "internal/deeply/nested/svc.go:5  nested.S.Do ") {
		t.Errorf("what is no terminal gets less than everything:\n%s", out)
	}
	var rows [][]string
	for line := range strings.Lines(out) {
		rows = append(rows, regexp.MustCompile(" {2,}").Split(strings.TrimSpace(line), -1))
	}
	var table strings.Builder
	printTable(&table, tableWidth, rows)
	out = table.String()
	for line := range strings.Lines(out) {
		if n := printed.Width(strings.TrimRight(line, "\n")); n > tableWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	code, out, errs = rategen(dir, "list", "-json", "./...")
	if code != 0 || errs != "" {
		t.Fatalf("-json: exit %d\n%s", code, errs)
	}
	var rules []map[string]any
	for line := range strings.Lines(out) {
		var rule map[string]any
		if err := json.Unmarshal([]byte(line), &rule); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	if len(rules) != 8 {
		t.Fatalf("%d rules:\n%s", len(rules), out)
	}
	if diff := cmp.Diff(map[string]any{
		"file": "a.go", "line": 3.0, "column": 1.0, "package": "example.com/m", "interface": "Service",
		"methods": []any{"GetByID", "Import"}, "shared": true, "name": "m.Service", "prefix": "rate_limit:m.Service:", "key": []any{},
		"max": "1000", "window": "24h0m0s", "algorithm": "sliding-log", "storage": "packed", "cost": "1", "mode": "enforce",
		"except": []any{"Name"},
	}, rules[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{
		"file": "a.go", "line": 7.0, "column": 2.0, "package": "example.com/m", "interface": "Service",
		"methods": []any{"Import"}, "name": "m.Service.Import", "prefix": "rate_limit:m.Service.Import:",
		"key": []any{"#tenant.ID", "clientIP(#tenant)", "#tenant.Region.Name"},
		"max": "#tenant.PerMinute", "window": "1m0s", "algorithm": "token-bucket", "burst": 20.0, "cost": "1", "mode": "enforce",
		"adaptive": []any{"cpu", "latency"},
	}, rules[2]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	for i, want := range map[int]map[string]any{
		5: {"window": "15m0s", "refund": "#err == nil", "block": "1h0m0s"},
		6: {"window": "30s", "algorithm": "concurrency", "deny": "busy(#err)"},
		7: {"cost": "9", "settle": "#tokens"},
	} {
		for option, value := range want {
			if got := rules[i][option]; got != value {
				t.Errorf("rule %d: %s is %v, want %v", i, option, got, value)
			}
		}
	}

	if code, out, errs := rategen(dir, "list", "./none"); code != 0 || out != "" || errs != "0 directives in these packages\n" {
		t.Errorf("no rules: exit %d\n%s%s", code, out, errs)
	}
	if code, _, errs := rategen(dir, "list", "-nonsense"); code != 2 || !strings.Contains(errs, "usage: rategen list") {
		t.Errorf("flag: exit %d\n%s", code, errs)
	}
	if code, _, errs := rategen(dir, "list", "./nowhere"); code != 1 || !strings.Contains(errs, "nowhere") {
		t.Errorf("no package: exit %d\n%s", code, errs)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		n          int
		start, end string
	}{
		{9, "ab服务yz", "ab服务yz"}, {8, "ab服务yz", "ab服务yz"}, {7, "…服务yz", "ab服务…"}, {6, "…务yz", "ab服…"}, {3, "…yz", "ab…"}, {1, "…", "…"},
	} {
		if s, e := cutStart("ab服务yz", c.n), cutEnd("ab服务yz", c.n); s != c.start || e != c.end {
			t.Errorf("%d: %q, %q", c.n, s, e)
		}
	}
}
