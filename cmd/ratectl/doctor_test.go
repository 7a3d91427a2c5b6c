package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// The doctor finds what is wrong, says what helps, and charges nothing.
func TestDoctor(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.take(t, 1, "login", 0, "user-1")
	before := b.dump(t)
	state := func(out, check string) string {
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); f[0] == check {
				return f[1]
			}
		}
		return "missing"
	}
	check := func(what string, code int, want map[string]string) {
		t.Helper()
		a := b.run("doctor")
		if a.code != code {
			t.Errorf("%s: exit code %d, %s", what, a.code, a.err)
		}
		for name, is := range want {
			if got := state(a.out, name); got != is {
				t.Errorf("%s: %s is %s, want %s:\n%s", what, name, got, is, a.out)
			}
		}
	}
	all := map[string]string{"version": "ok", "role": "ok", "clock": "ok", "eviction": "ok", "writes": "ok", "memory": "ok", "rights": "ok", "overrides": "ok", "expiry": "ok", "orphans": "ok"}
	check("a sound Redis", 0, all)
	if state(b.run("doctor").out, "budgets") != "ok" {
		t.Error("limits of minutes are no budgets")
	}
	listed, err := os.ReadFile(b.env["RATECTL_RULES"])
	if err != nil {
		t.Fatal(err)
	}
	month := `{"file":"c.go","line":1,"interface":"Plan","key":["#id"],"window":"month","tz":"Europe/Berlin","max":"9","algorithm":"fixed-window","prefix":"rate_limit:plan:","name":"plan.month","mode":"enforce"}`
	if err := os.WriteFile(b.env["RATECTL_RULES"], append(listed, month...), 0o600); err != nil {
		t.Fatal(err)
	}
	if a := b.run("doctor"); !strings.Contains(a.out, "1 rules count for a day or longer, and a server may lose that: plan.month") {
		t.Errorf("a month without an append-only file:\n%s", a.out)
	}
	b.client.ConfigSet(ctx, "appendonly", "yes")
	check("a month with one", 0, map[string]string{"budgets": "ok", "persistence": "ok"})
	if now := b.dump(t); len(now) != len(before) {
		t.Errorf("%d keys, and there were %d", len(now), len(before))
	}

	b.client.ConfigSet(ctx, "maxmemory", "3mb")
	b.client.ConfigSet(ctx, "maxmemory-policy", "allkeys-lru")
	b.client.ConfigSet(ctx, "appendonly", "yes")
	b.client.Set(ctx, "orders:rate_limit:login:lost%block", "x", 0)
	b.client.Set(ctx, "orders:rate_limit:gone:lost%block", "x", time.Hour)
	b.client.HSet(ctx, "orders:limits", "login.usr", `{"max": 7}`, "login.user", `{"max": 7, "until": "2020-01-01T00:00:00Z"}`)
	check("much that is not", 1, map[string]string{"eviction": "bad", "budgets": "warn", "persistence": "ok", "overrides": "warn", "expiry": "warn", "orphans": "warn"})
	a := b.run("doctor")
	for _, remedy := range []string{"ratectl fix-expiry", "maxmemory-policy noeviction", "rule login.usr: no rule of the listing", "rule login.user: it has ended", "1 keys start with orders:rate_limit:"} {
		if !strings.Contains(a.out, remedy) {
			t.Errorf("no %q in\n%s", remedy, a.out)
		}
	}
	b.client.HSet(ctx, "orders:limits", "login.user", `{"max": "7"}`)
	check("a broken hash", 1, map[string]string{"overrides": "bad"})
	b.client.Del(ctx, "orders:limits")

	// Without a right it says which.
	b.client.Do(ctx, "ACL", "SETUSER", "reader", "on", ">x", "~*", "+hello", "+ping", "+client", "+time", "+scan", "+hlen", "+hgetall", "+memory", "+pttl", "+exists", "+dbsize")
	b.env["RATECTL_USER"], b.env["RATECTL_PASSWORD"] = "reader", "x"
	a = b.run("doctor")
	if a.code != 1 || state(a.out, "server") != "unknown" || state(a.out, "rights") != "bad" {
		t.Errorf("exit code %d, %s\n%s", a.code, a.err, a.out)
	}
}

// TestRefusedWrites has a Redis that refuses every write, for each reason: the doctor says that it is
// bad, a change says what helps, and what frees memory works.
func TestRefusedWrites(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	b := newBench(t, client, server.Addr)
	b.take(t, 6, "login", 0, "acme")
	for name, test := range map[string]struct {
		refuse, again func() error
		remedy        string
	}{
		"full": {
			func() error { return client.ConfigSet(t.Context(), "maxmemory", "1mb").Err() },
			func() error { return client.ConfigSet(t.Context(), "maxmemory", "0").Err() }, "raise maxmemory",
		},
		"no snapshot": {
			func() error {
				is := client.ConfigGet(t.Context(), "d*").Val() // a directory stands where the snapshot is to be
				if err := cmp.Or(os.MkdirAll(filepath.Join(is["dir"], is["dbfilename"], "x"), 0o755), client.ConfigSet(t.Context(), "save", "1 1").Err(), client.BgSave(t.Context()).Err()); err != nil {
					return err
				}
				for client.Set(t.Context(), "x", 1, 0).Err() == nil { // until the snapshot has failed
					time.Sleep(10 * time.Millisecond)
				}
				return nil
			},
			func() error { return client.ConfigSet(t.Context(), "stop-writes-on-bgsave-error", "no").Err() }, "cannot save a snapshot",
		},
		"no replicas": {
			func() error { return client.ConfigSet(t.Context(), "min-replicas-to-write", "3").Err() },
			func() error { return client.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err() }, "min-replicas-to-write lower",
		},
		"a replica": {
			func() error { return client.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err() },
			func() error { return client.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err() }, "name its master",
		},
	} {
		if err := test.refuse(); err != nil {
			t.Fatal(err)
		}
		a := b.run("doctor")
		if a.code != 1 || !strings.Contains(a.out, "it refuses every write") || !strings.Contains(a.out, test.remedy) {
			t.Errorf("%s: exit code %d\n%s%s", name, a.code, a.out, a.err)
		}
		for _, line := range []string{"block login.user eve", "find acme", "find nobody", "inspect login.user acme", "usage login.user acme", "keys login.user", "keys model.tokens", "top -count 1"} {
			if a = b.run(strings.Fields(line)...); a.code != 1 || !strings.Contains(a.err, test.remedy) {
				t.Errorf("%s, %s: exit code %d, %s", name, line, a.code, a.err)
			}
		}
		if name == "full" {
			b.run("reset", "login.user", "acme", "-yes").wants(t, 0, "acme of rule login.user is reset;.*", "ratectl: it is in no history, since Redis is full\n")
		}
		if err := test.again(); err != nil {
			t.Fatal(err)
		}
	}
	b.run("block", "login.user", "eve").wants(t, 0, ".*", "")
	client.Del(t.Context(), "orders:limits") // as an eviction does
	if a := b.run("doctor"); a.code != 1 || !strings.Contains(a.out, "has left an override of eve of rule login.user there: it was evicted") {
		t.Errorf("exit code %d\n%s", a.code, a.out)
	}
	client.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">x", "~*", "+@all", "-set")
	b.env["RATECTL_USER"], b.env["RATECTL_PASSWORD"] = "reader", "x"
	if a := b.run("doctor"); !strings.Contains(a.out, "whether it takes writes was not tried") {
		t.Error(a.out)
	}
}

// A cluster is examined node by node, and a replica is none that can be used.
func testDoctorOfCluster(t *testing.T, b *bench) {
	a := b.run("doctor")
	if n := strings.Count(a.out, "\nversion "); a.code != 0 || n < 3 {
		t.Errorf("exit code %d, %d servers, %s\n%s", a.code, n, a.err, a.out)
	}
}
