package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratepage"
	"github.com/rategen/rategen/runtime/rule"
)

// TestRulesOfLivePage finds keys by the rules of a running program, of every kind that
// differs in how Redis holds its keys.
func TestRulesOfLivePage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	page := ratepage.New()
	store := runtime.NewRedisStore(server.Client(t), runtime.WithTimeout(time.Minute))
	limiter := runtime.New(store, runtime.WithObserver(page.Observer()), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	defer limiter.Close()
	other := runtime.New(store, runtime.WithObserver(page.Observer()), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	rules := []*runtime.Rule{
		{Name: "log", Prefix: "p:", Source: "a.go: A.B", Window: time.Hour, Max: 3},
		{Name: "bare", Window: time.Hour, Max: 3},
		{Name: "packed", Window: time.Hour, Max: 3, Storage: runtime.StoragePacked},
		{Name: "slices", Window: time.Hour, Max: 3, Storage: runtime.StoragePacked, Resolution: time.Second},
		{Name: "block", Window: time.Hour, Max: 3, Block: time.Minute},
		{Name: "lease", Window: time.Hour, Max: 3, Lease: time.Second},
		{Name: "layers", Window: time.Hour, Max: 3, Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10)},
		{Name: "auto", Window: time.Hour, Max: 3, Algorithm: runtime.SlidingCounter, Buckets: rule.AdaptiveBuckets()},
		{Name: "bucket", Window: time.Hour, Max: 300, Algorithm: runtime.TokenBucket, Burst: 3},
		{Name: "queue", Window: time.Hour, Max: 3, Algorithm: runtime.LeakyBucket, Wait: time.Hour},
		{Name: "permits", Window: time.Hour, Max: 3, Algorithm: runtime.Concurrency},
		{Name: "peer", Window: time.Hour, Max: 3, Hold: true},
	}
	limiter.Register(rules...)
	other.Register(rules...)
	for _, r := range rules {
		if _, err := limiter.Take(t.Context(), r.Limit(runtime.NewKey().AddString("a").AddString("b"))); err != nil {
			t.Fatal(r.Name, err)
		}
	}
	web := httptest.NewServer(http.StripPrefix("/limits", page))
	defer web.Close()
	defer page.Close()
	b := &bench{env: map[string]string{"RATECTL_REDIS": server.Addr, "RATECTL_RULES": web.URL + "/limits/"}}
	if a := b.run("rules", "-o", "json"); strings.Count(a.out, "\n") != len(rules) {
		t.Errorf("not each rule once: %+v", a)
	}
	_ = other.Close()
	for _, r := range rules {
		b.run("keys", r.Name, "-o", "json").wants(t, 0, `\{.*"key":"a:b".*\}\n`, "")
		b.run("inspect", r.Name, "a:b", "-o", "json").wants(t, 0, `(?s).*"rule":"`+r.Name+`".*`, "")
	}
	b.run("inspect", "log", "a:b", "-o", "json").wants(t, 0, `(?s).*"remaining":2.*`, "")
	if a := b.run("doctor"); a.code != 0 || !strings.Contains(a.out, "\nprogram ") || strings.Contains(a.out, "rule_changed") {
		t.Errorf("before anything is changed: %+v", a)
	}
	rules[0].Window = time.Minute
	b.until(t, "doctor", `\nprogram +warn +- +rule_changed log: .*override.*`) // the page looks once a second
	rules[0].Window = time.Hour
	b.run("rules").wants(t, 0, `(?s).*log .*a\.go: A\.B\n.*`, "")
	b.run("reset", "log", "a:b", "-yes").wants(t, 0, `(?s).*`, "ratectl: the history does not have this: .*")
	b.run("keys", "log", "-o", "json").wants(t, 3, "", `\{"error":"no key of rule log .*","exit_code":3\}\n`)

	peer := rules[len(rules)-1].Limit(runtime.NewKey().AddString("a").AddString("b"))
	b.run("release", "peer", "a:b").wants(t, 3, "", `ratectl: a:b of rule peer is not held back: it is ok\n`)
	limittest.OK(t, limiter.Hold(t.Context(), peer, time.Hour))
	b.run("top", "-count", "1").wants(t, 0, `RULE .*\npeer +1 +0 +0 +0 +1 +a:b\n.*`, "")
	b.run("keys", "peer", "-state", "held").wants(t, 0, `KEY .*\na:b +held +- +(59m\S+|1h) .*`, "")
	b.run("inspect", "peer", "a:b").wants(t, 0, `.*\nstate +held, since the peer of these calls has asked for it: ratectl release ends that\n.*`, "")
	b.run("release", "peer", "a:b", "-n").wants(t, 0, `a:b of rule peer would be released; nothing is changed; it was held back for another (59m\S+|1h)\n`, "")
	b.run("release", "peer", "a:b").wants(t, 4, "", `ratectl: nothing is changed: there is no terminal to ask on; say -yes to send calls again .*\n`)
	b.run("release", "peer", "a:b", "-yes").wants(t, 0, `a:b of rule peer is released; it was held back for another (59m\S+|1h)\n`, "ratectl: the history does not have this: .*")
	b.run("inspect", "peer", "a:b", "-o", "json").wants(t, 0, `.*"state":"ok".*"remaining":2,.*`, "") // what was counted stays
	b.run("release", "log", "a:b").wants(t, 2, "", `ratectl: rule log holds back no calls: .*\n`)

	for _, command := range []string{"block", "allow", "unblock", "inspect", "reset"} {
		b.run(command, "log").wants(t, 2, "", `ratectl: rule log has a limit for each part 1,part 2: name the KEY\n`)
		b.run(command, "log", "a").wants(t, 2, "", `ratectl: the number of parts of a key of rule log \(part 1,part 2\) is 2, and not 1 as in "a": .*\n`)
		b.run(command, "log", "-parts", "a", "b", "c").wants(t, 2, "", `ratectl: the number of parts of a key of rule log .part 1,part 2. is 2, and not 3 .*\n`)
	}

	limiter.Register(&runtime.Rule{Name: "new", Window: time.Hour, Max: 3}) // which nobody has called yet
	b.run("inspect", "new").wants(t, 2, "", `ratectl: the rules of a live page do not say whose limit new is: .*\n`)

	b.env["RATECTL_RULES"] = web.URL + "/elsewhere/"
	b.run("rules").wants(t, 1, "", `ratectl: page http.*: no live page answers there: 404.*\n`)
	b.env["RATECTL_RULES"] = "http://me:hunter2@localhost/"
	b.run("rules").wants(t, 2, "", `ratectl: -rules has a user.*RATECTL_PAGE_AUTHORIZATION.*\n`)
}
