package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// TestUsage wants an operator to see what a caller sees, with the period, and nothing
// charged.
func TestUsage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	rules := listing + `{"file":"a.go","line":9,"interface":"Plans","key":["#tenant"],"window":"year","tz":"Europe/Berlin","max":"100000","algorithm":"fixed-window","prefix":"rate_limit:plan:","name":"plan","mode":"enforce"}` + "\n"
	if err := os.WriteFile(b.env["RATECTL_RULES"], []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	b.rules["plan"] = &runtime.Rule{Name: "plan", Prefix: "rate_limit:plan:", Period: rule.Year, Zone: "Europe/Berlin", Max: 100_000, Algorithm: runtime.FixedWindow}
	b.take(t, 7, "plan", 0, "acme")
	b.take(t, 3, "reports", 50, "acme")
	b.take(t, 6, "login", 0, "acme")
	const head = `LIMIT +USED +LEFT +WINDOW +RESET +STATE\n`
	for range 2 {
		b.run("usage", "plan", "acme").wants(t, 0, head+`100000 +7 +99993 +year +\d+h\S* +ok\n`, "")
	}
	b.run("usage", "plan", "nobody").wants(t, 0, head+`100000 +0 +100000 +year +\d+h\S* +ok\n`, "")
	b.run("-o", "json", "usage", "plan", "acme").wants(t, 0, `\{"rule":"plan","key":"acme","state":"ok","shadow":false,"limit":100000,"used":7,"remaining":99993,"window":"year","retry_after_ms":0,"reset_after_ms":\d{7,}\}\n`, "")
	b.run("usage", "reports", "acme").wants(t, 0, head+`- +3 +- +1h +\S+ +unknown\n`, "")
	b.run("usage", "reports", "acme", "-max", "50").wants(t, 0, head+`50 +3 +47 +1h +\S+ +ok\n`, "")
	b.run("usage", "login.user", "acme").wants(t, 0, head+`5 +5 +0 +15m +\S+ +blocked\n`, "")
	b.run("override", "set", "plan", "-keys", "acme", "-max", "5").wants(t, 0, `.*`, "")
	b.run("usage", "plan", "acme").wants(t, 0, head+`5 +5 +0 +year +\S+ +refused\n`, "")
	b.run("usage", "nothing", "acme").wants(t, 2, "", `.*no rule.*\n`)
	b.run("usage", "plan", strings.Repeat("x", 5000)).wants(t, 2, "", `.*\n`)
}
