package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/rategen/rategen/internal/printed"
)

// TestTable has a terminal show the list of testdata/list.txtar, which is wider.
func TestTable(t *testing.T) {
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
	archive, err := txtar.ParseFile("testdata/list.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for _, f := range archive.Files {
		if f.Name == "rategen list ./..." {
			for line := range strings.Lines(string(f.Data)) {
				rows = append(rows, regexp.MustCompile(" {2,}").Split(strings.TrimSpace(line), -1))
			}
		}
	}
	var table strings.Builder
	printTable(&table, tableWidth, rows)
	for line := range strings.Lines(table.String()) {
		if n := printed.Width(strings.TrimRight(line, "\n")); n > tableWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
