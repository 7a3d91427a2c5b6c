package main

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/override"
)

// TestFollowing changes overrides that nobody, some and all of the processes follow, and wants to be
// told which.
func TestFollowing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.report(t, "a", "other:limits", "5 in 15m0s")
	b.run("block", "login.user", "user-1").wants(t, 4, "", `.*say -yes to write to "orders:limits", though none of the 1 processes that report follows the hash: they follow redis:other:limits\n`)
	b.run("override", "ls").wants(t, 0, `RULE.*none of the 1 processes .*`, "")
	b.run("doctor").wants(t, 1, `.*processes +bad +- +none of the 1 .*`, ".*")
	b.run("block", "-yes", "login.user", "user-1").wants(t, 0, `.*none of the 1 processes.*`, "")
	b.run("unblock", "login.user", "user-1").wants(t, 0, `.*none of the 1 processes.*`, "")

	b.report(t, "b", "orders:limits", "6 in 15m0s")
	b.run("override", "ls").wants(t, 0, `.*in force in 1 of the 1 processes that report and follow the hash\n`, "")
	b.run("block", "login.user", "user-2").wants(t, 0, `.*1 of the 2 processes that report follow the hash\n`, "")
	b.run("override", "ls").wants(t, 0, `.*in force in 0 of the 1 processes .*`, "")
	b.run("block", "login.user", "user-3", "-wait", "300ms").wants(t, 1, `.*1 of the 2 processes that report follow the hash\n`, `ratectl: after 300ms it is in force in 0 of the 1 processes that report and follow the hash: see ratectl doctor\n`)
	b.run("unblock", "login.user", "user-3").wants(t, 0, `.*`, "")
	limiter := runtime.New(runtime.NewRedisStore(b.client), runtime.WithNamespace("waited"), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithOverrides(override.Redis(b.client, "orders:limits"), 100*time.Millisecond))
	defer limiter.Close()
	limiter.Register(b.rules["login"])
	waited := newBench(t, b.client, server.Addr)
	waited.env["RATECTL_NAMESPACE"] = "waited"
	waited.run("block", "login.user", "user-3", "-wait", "1m").wants(t, 0, `.*in force in 1 of the 1 processes that report and follow the hash\n`, "")
	waited.run("undo", "-wait", "1m").wants(t, 0, `.*in force in 1 of the 1 processes that report and follow the hash\n`, "")
	a := b.run("doctor")
	for _, want := range []string{
		"the overrides are in force in 0 of 1 that follow the hash",
		"none has constructed what limits model.tokens, model.all, reports, jobs, twin",
		"rule login.user differs: 5 in 15m0s in 1; 6 in 15m0s in 1",
		"empty_part login.user: a part is empty (in 2 of 2)",
		"every key belongs to a rule",
	} {
		if !strings.Contains(a.out, want) {
			t.Errorf("no %q in\n%s", want, a.out)
		}
	}
}

// report reports that a process follows a hash, as a limiter does, and has a rule.
func (b *bench) report(t *testing.T, name, hash, terms string) {
	t.Helper()
	says, err := override.Redis(b.client, hash).Overrides(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(runtime.Process{
		Name: name, At: time.Now(), Overrides: "redis:" + hash, Version: says.Version(),
		Rules:    []runtime.ProcessRule{{Name: "login.user", Terms: terms}},
		Findings: []observe.Finding{{Code: "empty_part", Rule: "login.user", Text: "a part is empty", Help: "fill it", Since: time.Now()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.client.HSet(t.Context(), "orders:rate_limit:{processes}:1", name, text).Err(); err != nil {
		t.Fatal(err)
	}
}
