package main

import (
	"context"
	"testing"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// Numbers that make no sense are refused, and a key without an expiry is told from
// one that is about to go.
func TestNumbers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.take(t, 3, "login", 0, "user-1")
	b.take(t, 3, "reports", 10, "x")
	for _, args := range [][]string{
		{"keys", "login.user", "-limit", "-1"},
		{"keys", "login.user", "-limit", "-2000"},
		{"keys", "reports", "-max", "-5"},
		{"inspect", "reports", "x", "-max", "0"},
	} {
		b.run(args...).wants(t, 2, "", `ratectl: invalid value "\S+" for flag -(limit|max): write [01] or more; .*\n`)
	}
	b.run("memory", "").wants(t, 2, "", "ratectl: a PREFIX is empty: .*")
	b.run("keys", "login.user", "-limit", "0").wants(t, 0, "KEY.*\n", "ratectl: these are the first 0 of 1 keys, .*")

	if err := b.client.Persist(context.Background(), "orders:rate_limit:login:user-1%block").Err(); err != nil {
		t.Fatal(err)
	}
	b.run("inspect", "login.user", "user-1").wants(t, 0, `.*redis +\d+ bytes, without an expiry: see ratectl fix-expiry\n`, "")
	b.run("inspect", "login.user", "user-1", "-o", "json").wants(t, 0, `.*"expiry_ms":-1,.*`, "")
}

// A burst that the rule declares stays when the max is lowered, and that is said.
func TestBurstStays(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	const stays = `ratectl: rule model.tokens declares burst=20, which stays: a caller may still make 20 calls at once, and then 5 per (1m|2s)\n`
	b.run("override", "set", "model.tokens", "-max", "5", "-n").wants(t, 0, ".*", stays)
	b.run("override", "set", "model.tokens", "-max", "5").wants(t, 0, ".*", stays)
	b.run("override", "set", "model.tokens", "-keys", "acme:*", "-max", "5", "-window", "2s").wants(t, 0, ".*", stays)
	b.run("rules").wants(t, 0, `.*model.tokens +5 per 1m, 20 at once .*`, "")
	b.run("override", "set", "model.tokens", "-max", "20").wants(t, 0, ".*", "")
	b.run("rules").wants(t, 0, `.*model.tokens +20 per 1m .*`, "")
	b.run("override", "set", "login.user", "-max", "1").wants(t, 0, ".*", "")
}
