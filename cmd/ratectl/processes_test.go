package main

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// TestWait waits until a change is in force.
func TestWait(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	limiter := runtime.New(runtime.NewRedisStore(b.client), runtime.WithNamespace("waited"), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithOverrides(override.Redis(b.client, "orders:limits"), 100*time.Millisecond))
	defer limiter.Close()
	limiter.Register(b.rules["login.user"])
	b.env["RATECTL_NAMESPACE"] = "waited"
	b.run("block", "login.user", "user-3", "-wait", "1m").wants(t, 0, `.*in force in 1 of the 1 processes that report and follow the hash\n`, "")
	b.run("undo", "-wait", "1m").wants(t, 0, `.*in force in 1 of the 1 processes that report and follow the hash\n`, "")
}

// report reports that a process follows a hash, as a limiter does, and has a rule.
func (b *bench) report(t *testing.T, name, hash, terms string) {
	t.Helper()
	b.reportIn(t, "orders", name, hash, bridge.ProcessRule{Name: "login.user", Prefix: "rate_limit:login:", Terms: terms})
}

// reportIn is report in a namespace.
func (b *bench) reportIn(t *testing.T, namespace, name, hash string, has bridge.ProcessRule) {
	t.Helper()
	says, err := override.Redis(b.client, hash).Overrides(t.Context())
	limittest.OK(t, err)
	text, err := json.Marshal(bridge.Process{
		Name: name, Host: "host-" + name, Build: "v1", At: time.Now(), Overrides: "redis:" + hash, Version: says.Version(), Digest: has.Terms,
		Findings: []bridge.FindingGroup{{Code: "empty_part", Count: 7, First: []string{"login.user", "x", "y", "z"}, Text: "a part is empty", Help: "fill it", Since: time.Now()}},
	})
	limittest.OK(t, err)
	rules, err := json.Marshal([]bridge.ProcessRule{has})
	limittest.OK(t, err)
	reports := namespace + ":rate_limit:{processes}:"
	if _, err := b.client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.HSet(t.Context(), reports+"1", name, text)
		pipe.Set(t.Context(), reports+"rules:"+has.Terms, rules, time.Minute)
		pipe.ZAdd(t.Context(), reports+"alive", redis.Z{Score: float64(time.Now().Add(time.Hour).Unix()), Member: name})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestHolders has a call hold all permits of a key: who holds them is named, and no time at which they lapse.
func TestHolders(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	limiter := runtime.New(runtime.NewRedisStore(b.client, runtime.WithTimeout(5*time.Second)), runtime.WithNamespace("orders"), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	defer limiter.Close()
	if _, err := limiter.Take(t.Context(), b.rules["jobs"].Limit(runtime.NewKey().AddString("nightly")).WithCost(3)); err != nil {
		t.Fatal(err)
	}
	limiter.Register(b.rules["jobs"])
	b.until(t, "inspect jobs nightly", `state +refused\n.*retry after +when a call ends\n.*permits +3 by \S+ since \S+Z\n`)
	b.run("keys", "jobs").wants(t, 0, `.*nightly +refused +3/3 +when a call ends +.*`, "")
}

// TestProcesses has processes of two versions, of which one is killed: who lags, lives and differs is
// named, and a change waits for no dead one.
func TestProcesses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	const untold = `ratectl: which keys Redis is asked about is not known yet in the namespace "orders": none of 0 processes there has told its calls; .* ask again by then`
	b.run("top", "-by", "calls").wants(t, 3, "", untold+`\n`)
	b.run("top", "-by", "calls", "-count", "2", "-every", "100ms").wants(t, 3, "", untold+"; trying again in 100ms\n"+untold+`\n`)
	limiter := runtime.New(runtime.NewRedisStore(b.client), runtime.WithNamespace("orders"), runtime.WithRefusals(0, nil), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	limiter.Register(b.rules["jobs"])
	limittest.Eventually(t, "it has told its calls", func() bool { return !strings.Contains(b.run("top", "-by", "calls").err, "is not known yet") })
	b.run("top", "-by", "calls").wants(t, 3, "", `ratectl: no key is told by the 1 processes that tell their calls in the namespace "orders", the last one at \S+Z, 0 of which .*\n`)
	limiter.Close()
	b.run("top", "-by", "size").wants(t, 2, "", `ratectl: -by "size": there is -by calls, without -page\n`)
	b.run("processes").wants(t, 3, "", `ratectl: no process reports to this Redis in the namespace "orders": .*\n`)
	killed := service(t, []string{server.Addr})
	service(t, []string{server.Addr})
	service(t, []string{server.Addr}, asNewer+"=1")
	// A machine that is busy leaves calls undecided, which is a finding.
	b.until(t, "processes", `PROCESS +BUILD +ALIVE +CLOCK +OVERRIDES +CALLED +FINDINGS\n(\S+ +\S+ +yes +- +in force +1/1 +[01]\n){3}`)
	for _, most := range []string{"11", "12", "13"} { // one right after the other
		b.run("override", "set", "model.tokens", "-max", most, "-wait", "1m").wants(t, 0, `.*in force in 3 of the 3 processes that report and follow the hash\n`, ".*declares burst=20.*")
	}
	const differs = `ratectl: rule model.tokens differs[^\n]*: 10 in 1m0s, token-bucket in 2 \(\S+\); 15 in 1m0s, token-bucket in 1 \(\S+\)\n`
	b.run("override", "rm", "model.tokens").wants(t, 0, ".*", "")
	b.until(t, "top -by calls", `RULE +KEY +CALLS/S +SHARE +PROCESSES +REMEDY\nmodel.tokens +acme:ann +\d+ +100% +\d +lease=1s\n`)
	b.run("rules").wants(t, 0, `.*\nmodel.tokens +10 or 15 in 1m0s +.*`, differs)
	b.run("keys", "model.tokens").wants(t, 0, `.*\nacme:ann +\w+ +\d+/20 of 10 or 15 in 1m0s +.*`, differs)
	b.run("find", "ann").wants(t, 0, `.*\nmodel.tokens +acme:ann +\w+ +\d+/20 of 10 or 15 in 1m0s +.*`, differs)
	b.run("inspect", "model.tokens", "acme:ann").wants(t, 0, `.*\nlimit +20, \d+ left; processes have 10 or 15 in 1m0s\n.*`, differs)
	b.run("usage", "model.tokens", "acme:ann").wants(t, 0, `LIMIT.*\n10 or 15 in 1m0s +\d+ .*`, differs)
	b.run("top", "-count", "1").wants(t, 0, `RULE.*\nmodel.tokens \(10 or 15 in 1m0s\) +0 .*`, differs)
	b.run("keys", "model.tokens", "-o", "json").wants(t, 0, `.*"differs":"10 or 15 in 1m0s".*`, differs)
	if a := b.run("doctor"); !strings.Contains(a.out, "rule model.tokens differs: 10 in 1m0s") {
		t.Error(a.out)
	}
	limittest.OK(t, killed.Process.Kill())
	b.run("override", "set", "model.tokens", "-max", "14", "-wait", "2m").wants(t, 0, `.*in force in 2 of the 2 processes that report and follow the hash; no sign of life from 1: \S+ since \S+Z\n`, ".*declares burst=20.*")
	b.until(t, "processes", ` not since \S+Z +- +version `)
	b.run("override", "ls").wants(t, 0, `.*in force in 2 of the 2 .*; no sign of life from 1: .*`, "")
	if a := b.run("doctor"); !strings.Contains(a.out, "1 of 3 give no sign of life") {
		t.Error(a.out)
	}
}
