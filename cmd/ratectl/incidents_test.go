package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

// TestIncidents has each incident of docs/operating.md happen, runs the command that stands there, and wants
// what stands there of its output.
func TestIncidents(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operating.md")
	limittest.OK(t, err)
	happen := map[string]string{ // steps of a document
		"a customer is refused":    "take 6 login.user acme",
		"an override refuses":      "ratectl block login.user acme",
		"a customer was refused":   "told 30\nlogin.user acme 12",
		"shadow mode would refuse": "told 30\n!login.user acme 12",
		"one caller takes all":     "take 30 model.tokens acme ann",
		"somebody changed a limit": `ratectl override set login.user -max 9 -m "ticket 7"`,
		"all limits are off":       "ratectl override set * -enabled false -yes",
		"overrides are rejected":   `redis hset orders:limits login.user {"max":"x"}`,
		"overrides vanished":       "ratectl block login.user acme; redis del orders:limits",
		"a change does not arrive": `report shop-1 orders:limits "5 in 15m0s"; ratectl block login.user acme`,
		"two versions run":         `report shop-1 orders:limits "15 in 15m0s"; report shop-2 orders:limits "30 in 15m0s"`,
		"Redis is down":            "kill",
		"Redis is full":            "redis config set maxmemory 1mb",
		"Redis evicts":             "redis config set maxmemory 50mb; redis config set maxmemory-policy allkeys-lru",
		"Redis is a replica":       "redis replicaof 127.0.0.1 1",
	}
	_, rest, _ := strings.Cut(string(text), "<!-- incidents -->")
	table, _, found := strings.Cut(rest, "<!-- /incidents -->")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.Contains(line, "`ratectl ") {
			continue
		}
		rows++
		name, command, says := strings.TrimSpace(cells[0]), strings.Trim(cells[1], " `"), strings.Trim(cells[2], " `")
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			b := newBench(t, server.Client(t), server.Addr)
			if happen[name] == "" {
				t.Fatal("nobody makes it happen")
			}
			step := play(t, b, server.Addr)
			for line := range strings.SplitSeq(happen[name], "; ") {
				if line == "kill" {
					server.Kill()
					continue
				}
				line, input, _ := strings.Cut(line, "\n")
				step(line, input)
			}
			a := b.run(strings.Fields(command)[1:]...)
			if got := strings.Join(strings.Fields(a.out+" "+a.err), " "); !strings.Contains(got, says) {
				t.Errorf("%s: no %q in\n%s", command, says, fmt.Sprint(a.out, a.err))
			}
		})
	}
	if !found || rows != len(happen) {
		t.Errorf("%d incidents in docs/operating.md, of %d", rows, len(happen))
	}
}
