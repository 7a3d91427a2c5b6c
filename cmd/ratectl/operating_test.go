package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// What docs/operating.md shows is what the command prints, but for times, sizes and
// the blanks between columns.
func TestOperatingPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.listExamples(t, "recipes/login/", "recipes/gateway/")
	b.env["RATECTL_NAMESPACE"], b.env["RATECTL_OVERRIDES"] = "orders", "shop:limits"
	b.rules["user"] = &runtime.Rule{Name: "login.user", Prefix: "rate_limit:login.Accounts.LogIn:", Window: 15 * time.Minute, Max: 5, Block: time.Hour}
	b.rules["address"] = &runtime.Rule{Name: "login.address", Prefix: "rate_limit:login.Accounts.LogIn#2:", Window: 15 * time.Minute, Max: 50, Block: time.Hour}
	b.rules["gateway"] = &runtime.Rule{Name: "gateway.requests", Prefix: "rate_limit:gateway.Model.Ask#2:", Window: time.Minute, Max: 60}
	b.take(t, 6, "user", 0, "ada")
	b.take(t, 4, "user", 0, "bob")
	b.take(t, 2, "user", 0, "eve")
	b.take(t, 12, "address", 0, "203.0.113.7")
	b.take(t, 3, "address", 0, "2001:db8::")
	b.take(t, 61, "gateway", 0, "acme")
	b.take(t, 30, "gateway", 0, "globex")
	for i := range 40 {
		b.take(t, 1, "gateway", 0, fmt.Sprint("tenant-", i))
	}
	var printed strings.Builder
	for _, line := range []string{
		"memory", "top", "inspect login.user ada", "keys gateway.requests -state near,refused",
		"reset login.user ada -yes",
		"override set gateway.requests -keys acme -max 200 -for 2h",
		"block login.address -parts 2001:db8:: -for 1h",
		"override ls",
	} {
		for _, name := range []string{"a", "b", "c"} {
			b.report(t, name, "shop:limits", "")
		}
		a := b.run(strings.Fields(line)...)
		if a.code != 0 || a.err != "" {
			t.Errorf("%s: exit code %d, %s", line, a.code, a.err)
		}
		if command, _, _ := strings.Cut(line, " -yes"); !strings.Contains(string(page), "ratectl "+command) {
			t.Errorf("the page does not show ratectl %s", command)
		}
		printed.WriteString(strings.ReplaceAll(a.out, "orders:", "shop:"))
	}
	blocks, compared := strings.Split(string(page), "\n```text\n"), 0
	for _, block := range blocks[1:] {
		block, _, _ = strings.Cut(block, "\n```")
		if strings.HasPrefix(block, "ratectl: ") {
			continue // an error, see TestFailures
		}
		for line := range strings.Lines(block) {
			if compared++; !strings.Contains(comparable(printed.String()), comparable(line)) {
				t.Errorf("the command does not print %q, but:\n%s", comparable(line), comparable(printed.String()))
			}
		}
	}
	if compared < 30 {
		t.Errorf("%d lines are compared", compared)
	}
}

// comparable returns output without what differs from run to run.
func comparable(text string) string {
	for _, differs := range []struct{ what, as string }{
		{`\d{4}-\d\d-\d\dT[\d:]+Z`, "TIME"},
		{`\b(\d+h)?(\d+m)?[\d.]+s\b|\b1h\b|\b1m\b`, "DURATION"},
		{`\d+ bytes`, "BYTES"},
		{`(?m)^(\d+ +)\d+( +0 +0 +)`, "$1 SIZE$2"},
		{` +`, " "},
	} {
		text = regexp.MustCompile(differs.what).ReplaceAllString(text, differs.as)
	}
	return text
}
