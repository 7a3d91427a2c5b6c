package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// New returns with the first overrides, which stay when the limiter is closed, as often
// and by as many as one likes.
func TestClose(t *testing.T) {
	synctest.Test(t, testClose) // New waits for a tenth of a second, which is short on a busy machine
}

func testClose(t *testing.T) {
	var looks atomic.Int64
	followed := runtime.New(nil, quiet, runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
		looks.Add(1)
		return runtime.Overrides{Enabled: new(false)}, nil
	}), time.Hour))
	if followed.Enabled() || looks.Load() != 1 {
		t.Error("New has returned before the first overrides")
	}
	for _, limiter := range []*runtime.Limiter{runtime.New(nil), followed, runtime.New(nil, runtime.WithOverrides(nil, 0), quiet)} {
		concurrently(3, func(int) { ok(t, limiter.Close()) })
	}
	if followed.Enabled() {
		t.Error("the overrides are gone with Close")
	}
}

// TestNothingPrivateOfOverrides gives a limiter overrides that are wrong in every way,
// and wants each error to be noted, without the key, and to have the key in its cause.
func TestNothingPrivateOfOverrides(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limit := (&runtime.Rule{Name: "r", Prefix: "r:", Window: time.Minute, Max: 3}).Limit(key(caller))
	overriding := func(keys keys) runtime.OverrideSource { return fixed(overridesOf(rule.Override{Keys: keys})) }
	fails := func(err error) runtime.OverrideSource {
		return runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) { return runtime.Overrides{}, err })
	}
	file := func(name, text string) runtime.OverrideSource {
		path := filepath.Join(t.TempDir(), name)
		ok(t, os.WriteFile(path, []byte(text), 0o600))
		return override.File(path)
	}
	hashes := 0
	hash := func(fields ...string) runtime.OverrideSource {
		hashes++
		client, key := server.Client(t), fmt.Sprint("h", hashes)
		ok(t, client.HSet(t.Context(), key, fields).Err())
		return override.Redis(client, key)
	}
	gone := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: "127.0.0.1:1"}))
	defer gone.Close()
	for name, c := range map[string]struct {
		source runtime.OverrideSource
		cause  string // is in the cause
	}{
		"max":            {overriding(keys{caller: maximum(-1)}), caller},
		"pattern":        {overriding(keys{caller + "*x": {}}), caller},
		"escape":         {overriding(keys{caller + "%41": {}}), caller},
		"twice":          {overriding(keys{caller + "é": {}, caller + "%C3%A9": {}}), caller},
		"does not fit":   {overriding(keys{caller: maximum(rule.MaxCount)}), caller},
		"dial":           {fails(&url.Error{Op: "Get", URL: "http://" + address + "/limits?key=" + caller, Err: context.DeadlineExceeded}), address},
		"own":            {fails(errors.New("no limits of " + caller + " at " + address)), caller},
		"redis":          {override.Redis(gone, "limits"), "127.0.0.1:1"},
		"json value":     {file("a.json", `{"rules": {"r": {"keys": {"`+caller+`": {"max": "many"}}}}}`), caller},
		"json object":    {file("a.json", `{"rules": {"r": {"keys": {"`+caller+`": 5}}}}`), caller},
		"json empty":     {file("a.json", `{"rules": {"r": {"keys": {"`+caller+`": null}}}}`), caller},
		"json twice":     {file("a.json", `{"rules": {"r": {"keys": {"`+caller+`": {}, "`+caller+`": {}}}}}`), caller},
		"json misplaced": {file("a.json", `{"rules": {"r": {"`+caller+`": {"max": 5}}}}`), caller},
		"yaml value":     {file("a.yaml", "rules:\n  r:\n    keys:\n      "+caller+": {max: many}\n"), caller},
		"yaml twice":     {file("a.yaml", "rules:\n  r:\n    keys:\n      "+caller+": {}\n      "+caller+": {}\n"), caller},
		"yaml syntax":    {file("a.yaml", "rules:\n  r:\n    keys:\n      "+caller+": *"+caller+"\n"), ""},
		"yaml alias":     {file("a.yaml", "rules:\n  r:\n    keys: {a: &a {max: 1}, "+caller+": *a}\n"), ""},
		"hash value":     {hash(`["r", "`+caller+`"]`, `{"max": "many"}`), caller},
		"hash json":      {hash(`["r", "`+caller+`"]`, `{"max": `), caller},
		"hash field":     {hash(`["r", "`+caller+`", "x"]`, `{}`), caller},
		"hash twice":     {hash(`["r", "`+caller+`"]`, `{"max": 1}`, `["r","`+caller+`"]`, `{"max": 1}`), caller},
	} {
		t.Run(name, func(t *testing.T) {
			var w notes
			seen := make(chan error, 10)
			l := w.limiter(runtime.NewMemoryStore(), runtime.WithOverrides(c.source, time.Hour),
				observing(observe.Observer{Override: func(ev observe.OverrideEvent) { seen <- ev.Err }}))
			_, err := l.Take(t.Context(), limit)
			w.note("take", err)
			rejected := <-seen
			if rejected == nil { // before the rule was known
				rejected = <-seen
			}
			ok(t, l.Close())
			w.find(t, "127.0.0.1")
			if cause := errors.Unwrap(rejected); c.cause != "" && (cause == nil || !strings.Contains(cause.Error(), c.cause)) {
				t.Errorf("the cause of %q is %v", rejected, cause)
			}
		})
	}
}
