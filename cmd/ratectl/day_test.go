package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/ratepage"
)

// TestCustomersDay is a customer's day on a cluster: refused, found on the page, given
// more for an hour, blocked while the master dies that has the overrides, unblocked,
// and all of it undone. A program follows the hash all the time.
func TestCustomersDay(t *testing.T) {
	t.Parallel()
	if !effort.Full() {
		t.Skip("in a full run only: TestCluster and TestTwoOperators try the commands")
	}
	ctx := context.Background()
	cluster := redistest.StartCluster(t)
	victim := cluster.Master(cluster.Slot("orders:limits"))
	survivor := cluster.Nodes[0]
	if survivor == victim {
		survivor = cluster.Nodes[1]
	}
	client := cluster.Client(t)
	b := newBench(t, client, survivor.Addr)
	discard := slog.New(slog.DiscardHandler)
	page := ratepage.New(ratepage.WithPlainKeys(), ratepage.WithLogger(discard),
		ratepage.WithActions(func(*http.Request, ratepage.Action) (string, error) { return "bob", nil }, override.NewEditor(client, "orders:limits")))
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second), runtime.WithRefusalMemory(0)), runtime.WithNamespace("orders"), runtime.WithLogger(discard),
		runtime.WithObserver(page.Observer()), runtime.WithOverrides(override.Redis(client, "orders:limits"), 50*time.Millisecond))
	defer limiter.Close()
	rule := b.rules["login.user"]
	limiter.Register(rule)
	acme := rule.Limit(runtime.NewKey().AddString("acme"))
	holds := func(what string, wanted func(runtime.Decision) bool) {
		t.Helper()
		var d runtime.Decision
		var err error
		for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(20 * time.Millisecond) {
			if d, err = limiter.Peek(ctx, acme); err == nil && wanted(d) {
				return
			}
		}
		t.Fatalf("%s: %+v, %v", what, d, err)
	}
	max := func(n int64) func(runtime.Decision) bool {
		return func(d runtime.Decision) bool { return d.Allowed && d.Limit == n }
	}
	blocked := func(d runtime.Decision) bool { return !d.Allowed && d.RetryAfter == runtime.Never }
	does := func(out string, args ...string) {
		t.Helper()
		var a answer
		for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(100 * time.Millisecond) {
			if a = b.run(append(args, "-timeout", "2s")...); a.code != 1 { // 1: Redis has failed
				break
			}
		}
		if a.code != 0 || !strings.Contains(a.out, out) {
			t.Fatalf("%q: exit code %d, %s%s, want %q", args, a.code, a.out, a.err, out)
		}
	}
	get := func(path string) string {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Body.String()
	}

	for range 6 {
		_, _ = limiter.Take(ctx, acme)
	}
	if said := get("/api/state"); !strings.Contains(said, `"key":"acme"`) {
		t.Fatalf("the page does not name the customer: %s", said)
	}
	does("blocked", "inspect", "login.user", "acme")
	does("is reset", "reset", "login.user", "acme", "-yes")
	does(`{"max":1000}`, "override", "set", "login.user", "-keys", "acme", "-max", "1000", "-m", "contract")
	does(`"max_then":1000`, "override", "set", "login.user", "-keys", "acme", "-max", "2000", "-for", "1h", "-m", "ticket 7")
	holds("more for an hour", max(2000))

	// What the master has acknowledged is to be on its replica before it dies.
	for range 100 {
		if n, err := victim.Client(t).Do(ctx, "WAIT", 1, 5000).Int(); err == nil && n > 0 {
			break
		}
	}
	victim.Kill()
	does(`"block":true`, "block", "login.user", "acme", "-m", "an attack")
	holds("the block", blocked)
	does(`"max":2000`, "unblock", "login.user", "acme")
	holds("the raised limit again", max(2000))
	does("", "undo") // of the unblock
	holds("the block again", blocked)
	does("", "undo") // of the block
	does(`{"max":1000} again`, "undo")
	holds("the customer's quota", max(1000))
	does(`gone again`, "undo")
	holds("the rule's limit", max(5))

	said := get("/api/overrides")
	for _, part := range []string{`"who":"ada","why":"an attack"`, `"why":"ticket 7"`, `"undoes":2`, `"id":9`, `"did":"reset"`} {
		if !strings.Contains(said, part) {
			t.Errorf("the page's history lacks %s: %s", part, said)
		}
	}
}
