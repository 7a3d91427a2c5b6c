package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/pgtest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateledger"
)

// TestLedger loses a Redis in mid-year, and wants an operator to have it count again, once.
func TestLedger(t *testing.T) {
	t.Parallel()
	postgres, err := pgtest.Launch()
	if errors.Is(err, pgtest.ErrNone) && os.Getenv("RATEGEN_REQUIRE_POSTGRES") != "1" {
		t.Skip(err)
	}
	ok := func(err error) { t.Helper(); limittest.OK(t, err) }
	ok(err)
	t.Cleanup(postgres.Stop)
	url, err := postgres.Database()
	ok(err)
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.run("ledger", "restore", "-yes").wants(t, 3, "", "ratectl: no rule has ledger=on: there is nothing to restore\n")
	const rules = `{"file":"a.go","line":9,"interface":"Plans","key":["#tenant"],"window":"year","ledger":"on","max":"100","algorithm":"fixed-window","prefix":"rate_limit:plan:","name":"plan","mode":"enforce"}
{"file":"a.go","line":10,"interface":"Plans","key":["#tenant"],"window":"year","ledger":"hash","max":"100","algorithm":"fixed-window","prefix":"rate_limit:secret:","name":"secret","mode":"enforce"}
`
	ok(os.WriteFile(b.env["RATECTL_RULES"], []byte(rules), 0o600))
	b.readRules(t)
	b.run("ledger", "ls", "-postgres", "postgres://rategen:word@/x").wants(t, 2, "", "ratectl: -postgres has a password, .*")
	b.env["RATECTL_POSTGRES"] = url
	b.run("ledger", "restore", "-yes").wants(t, 3, "", "ratectl: there is no table ledger in this database: .*")

	pool, err := pgxpool.New(t.Context(), url)
	ok(err)
	defer pool.Close()
	store := runtime.NewRedisStore(b.client, runtime.WithTimeout(20*time.Second)) // none of the calls may be missing
	limiter := runtime.New(store, runtime.WithNamespace("orders"))
	defer limiter.Close()
	b.limiter = limiter
	ledger, err := rateledger.Open(t.Context(), pool, store)
	ok(err)
	limiter.Register(b.rules["plan"], b.rules["secret"])
	b.take(t, 7, "plan", 0, "acme")
	b.take(t, 5, "plan", 0, "other")
	b.take(t, 3, "secret", 0, "acme")
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- ledger.Run(ctx) }() // it begins by a scan
	for written := 0; written < 15; {
		ok(pool.QueryRow(t.Context(), "SELECT coalesce(sum(total), 0)::int FROM ledger").Scan(&written))
	}
	cancel()
	ok(<-ran)
	b.run("ledger", "ls").wants(t, 0, `RULE +KEYS +TOTAL +WRITTEN-AGO\nplan +2 +12 +\d+s\nsecret +1 +3 +\d+s\n`, "")
	ok(b.client.FlushDB(t.Context()).Err())
	b.take(t, 1, "plan", 0, "acme") // a program goes on
	// Those that report have the rule elsewhere, or do not have it: nobody would read what is written.
	elsewhere := func(namespace, prefix, name, why string) {
		b.reportIn(t, namespace, "p", "orders:limits", bridge.ProcessRule{Name: name, Prefix: prefix, Terms: "100 in a year"})
		before := b.dump(t)
		for _, flag := range []string{"-yes", "-n"} {
			b.run("ledger", "restore", flag).wants(t, 2, "", why)
		}
		if diff := cmp.Diff(before, b.dump(t)); diff != "" {
			t.Errorf("it has written (-before +after):\n%s", diff)
		}
		ok(b.client.Del(t.Context(), namespace+":rate_limit:{processes}:1", namespace+":rate_limit:{processes}:alive").Err())
	}
	elsewhere("orders", "rate_limit:old:", "plan", `ratectl: the keys of rule plan start with "rate_limit:old:" in the processes that report, and with "rate_limit:plan:" in the listing: .*`)
	elsewhere("orders", "rate_limit:x:", "x", `ratectl: none of the 1 processes that report in the namespace "orders" has rule plan: .*`)
	elsewhere("shop", "rate_limit:plan:", "plan", `ratectl: no process reports in the namespace "orders", and those with rule plan do in the namespace "shop": name that with -namespace\n`)
	const unknown = `whether a process reads them is not known: none reports in the namespace "orders"`
	// One that was killed still has its report, and reads nothing any more.
	b.reportIn(t, "orders", "p", "orders:limits", bridge.ProcessRule{Name: "plan", Prefix: "rate_limit:plan:", Terms: "100 in a year"})
	ok(b.client.ZAdd(t.Context(), "orders:rate_limit:{processes}:alive", redis.Z{Score: float64(time.Now().Add(-time.Minute).Unix()), Member: "p"}).Err())
	b.run("ledger", "restore", "-n").wants(t, 0, ".*", "ratectl: "+unknown+"\n")
	b.run("ledger", "restore", "-n", "-o", "json").wants(t, 0, "", "ratectl: "+unknown+"\n")
	b.reportIn(t, "orders", "p", "orders:limits", bridge.ProcessRule{Name: "plan", Prefix: "rate_limit:plan:", Terms: "100 in a year"})
	b.run("ledger", "restore", "-n").wants(t, 0, "what Redis has lost of 1 rules would be restored; nothing is changed\n", "")
	b.run("ledger", "restore").wants(t, 4, "", ".*say -yes to restore what Redis has lost of 1 rules\n")
	b.run("ledger", "restore", "-yes", "-m", "lost").wants(t, 0, "2 counts restored\n", "")
	ok(b.client.Del(t.Context(), "orders:rate_limit:{processes}:1", "orders:rate_limit:{processes}:alive").Err())
	b.run("ledger", "restore", "-yes").wants(t, 0, "0 counts restored; "+unknown+"\n", "ratectl: "+unknown+"\n")
	b.run("-o", "json", "ledger", "restore", "-yes").wants(t, 0, `{"restored":0,"not_known":"whether .*"}\n`, "ratectl: "+unknown+"\n")
	b.run("usage", "plan", "acme").wants(t, 0, `LIMIT.*100 +8 +92 .*`, "")
	b.run("usage", "plan", "other").wants(t, 0, `LIMIT.*100 +5 +95 .*`, "")
	b.run("usage", "secret", "acme").wants(t, 0, `LIMIT.*100 +0 +100 .*`, "")
	b.run("history").wants(t, 0, `.*ledger restore.*lost.*`, "")
}
