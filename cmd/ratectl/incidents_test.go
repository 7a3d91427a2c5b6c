package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// TestIncidents has each incident of docs/operating.md happen, runs the command that stands there, and wants
// what stands there of its output.
func TestIncidents(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	happen := map[string]func(t *testing.T, b *bench, server *redistest.Server){
		"a customer is refused": func(t *testing.T, b *bench, _ *redistest.Server) { b.take(t, 6, "login.user", 0, "acme") },
		"an override refuses":   func(t *testing.T, b *bench, _ *redistest.Server) { b.run("block", "login.user", "acme") },
		"a customer was refused": func(t *testing.T, b *bench, _ *redistest.Server) {
			b.tellRefused(t, time.Now().Unix(), 30, "login.user\tacme\t12")
		},
		"shadow mode would refuse": func(t *testing.T, b *bench, _ *redistest.Server) {
			b.tellRefused(t, time.Now().Unix(), 30, "!login.user\tacme\t12")
		},
		"one caller takes all": func(t *testing.T, b *bench, _ *redistest.Server) { b.take(t, 30, "model.tokens", 0, "acme", "ann") },
		"somebody changed a limit": func(t *testing.T, b *bench, _ *redistest.Server) {
			b.run("override", "set", "login.user", "-max", "9", "-m", "ticket 7")
		},
		"all limits are off": func(t *testing.T, b *bench, _ *redistest.Server) {
			b.run("override", "set", "*", "-enabled", "false", "-yes")
		},
		"overrides are rejected": func(t *testing.T, b *bench, _ *redistest.Server) {
			b.client.HSet(t.Context(), "orders:limits", "login.user", `{"max":"x"}`)
		},
		"overrides vanished": func(t *testing.T, b *bench, _ *redistest.Server) {
			b.run("block", "login.user", "acme")
			b.client.Del(t.Context(), "orders:limits")
		},
		"a change does not arrive": func(t *testing.T, b *bench, _ *redistest.Server) {
			b.report(t, "shop-1", "orders:limits", "5 in 15m0s")
			b.run("block", "login.user", "acme")
		},
		"two versions run": func(t *testing.T, b *bench, _ *redistest.Server) {
			b.report(t, "shop-1", "orders:limits", "15 in 15m0s")
			b.report(t, "shop-2", "orders:limits", "30 in 15m0s")
		},
		"Redis is down": func(_ *testing.T, _ *bench, server *redistest.Server) { server.Kill() },
		"Redis is full": func(t *testing.T, b *bench, _ *redistest.Server) {
			b.client.ConfigSet(t.Context(), "maxmemory", "1mb")
		},
		"Redis evicts": func(t *testing.T, b *bench, _ *redistest.Server) {
			b.client.ConfigSet(t.Context(), "maxmemory", "50mb")
			b.client.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru")
		},
		"Redis is a replica": func(t *testing.T, b *bench, _ *redistest.Server) {
			b.client.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1")
		},
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
			if happen[name] == nil {
				t.Fatal("nobody makes it happen")
			}
			happen[name](t, b, server)
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
