package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// stallAfter returns the address of a Redis that stalls after so many requests, or once it has executed the next one, and
// whether it has.
func stallAfter(t *testing.T, addr string, requests int64, executes bool) (at string, stalled func() bool) {
	t.Helper()
	var asked atomic.Int64
	at = between(t, addr, func(sent []byte) []byte {
		if n := asked.Add(1); n <= requests || executes && n == requests+1 {
			return sent
		}
		return nil
	}, func(replied []byte) []byte {
		if asked.Load() <= requests {
			return replied
		}
		return nil
	})
	return at, func() bool { return asked.Load() > requests }
}

// loginKey returns the Redis key of a user who logs in.
func (b *bench) loginKey(user string) string {
	return bridge.LimiterOf(b.limiter).RedisKey(b.rules["login.user"].Limit(runtime.NewKey().AddString(user)))
}

// TestStallsEverywhere has Redis stall after each of the requests of commands, before it executes one or after that. No
// command hangs, or says of what it does not know that it is so.
func TestStallsEverywhere(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const file = "counts" // of each test its own
	hash := func(field, value string) func(b *bench) bool {
		return func(b *bench) bool { return b.client.HGet(ctx, "orders:limits", field).Val() == value }
	}
	exists := func(user string, n int64) func(b *bench) bool {
		return func(b *bench) bool { return b.client.Exists(ctx, b.loginKey(user)).Val() == n }
	}
	for _, test := range []struct {
		line []string
		done func(b *bench) bool // nil: it changes nothing
		says string              // only if it is done; what it prints of no part
	}{
		{[]string{"override", "set", "login.user", "-max", "7"}, hash("login.user", `{"max":7}`), `override is {"max":7}`},
		{[]string{"override", "set", "*", "-scale", "200%", "-yes"}, hash("model.tokens", `{"max":20}`), `to undo`},
		{[]string{"override", "rm", "login.user"}, hash("login.user", ""), `override is gone`},
		{[]string{"undo", "-yes"}, hash("login.user", ""), `again`},
		{[]string{"reset", "login.user", "user-1", "-yes"}, exists("user-1", 0), `is reset`},
		{[]string{"fix-expiry", "-yes"}, func(b *bench) bool { return b.client.TTL(ctx, b.loginKey("user-2")).Val() > 0 }, ""},
		{[]string{"import", file, "-yes"}, exists("user-3", 1), ""},
		{[]string{"export"}, nil, `{"keys":`},
		{[]string{"propose", "login.user"}, nil, "REFUSES"},
		{[]string{"top", "-count", "1"}, nil, "RULE"},
	} {
		t.Run(strings.Join(test.line[:min(2, len(test.line))], " "), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			b := newBench(t, server.Client(t), server.Addr)
			counts := filepath.Join(t.TempDir(), file)
			line := slices.Clone(test.line)
			if i := slices.Index(line, file); i >= 0 {
				line[i] = counts
			}
			try := func(addr, timeout string) answer {
				t.Helper()
				b.env["RATECTL_REDIS"] = server.Addr
				limittest.OK(t, b.client.FlushDB(ctx).Err())
				b.take(t, 6, "login.user", 0, "user-3")
				limittest.OK(t, os.WriteFile(counts, []byte(b.run("export").out), 0o600))
				limittest.OK(t, b.client.FlushDB(ctx).Err())
				b.take(t, 6, "login.user", 0, "user-1")
				b.take(t, 1, "login.user", 0, "user-2")
				limittest.OK(t, b.client.Persist(ctx, b.loginKey("user-2")).Err())
				b.run("override", "set", "login.user", "-max", "9").wants(t, 0, ".*", "")
				b.report(t, "p", "orders:limits", "5 in 15m")
				b.env["RATECTL_REDIS"] = addr
				return b.run(append(line, "-timeout", timeout)...)
			}
			numbers := regexp.MustCompile(`\S*[0-9]\S*|\s`)
			alone := try(server.Addr, "20s")
			whole := numbers.ReplaceAllString(alone.out, "")
			for _, executes := range []bool{false, true} {
				for n, over := int64(8), false; !over && (!executes || test.done != nil); n++ { // before, it connects
					addr, stalled := stallAfter(t, server.Addr, n, executes)
					began := time.Now()
					a := try(addr, "100ms")
					over = !stalled() && a.code == alone.code
					if took := time.Since(began); took > 20*time.Second {
						t.Errorf("after %d requests it hung for %v", n, took)
					}
					done := test.done == nil || test.done(b)
					if a.code == 0 && !strings.Contains(a.err, "not known") && (!done || numbers.ReplaceAllString(a.out, "") != whole) {
						t.Errorf("after %d requests it is a success in part: %+v", n, a)
					}
					if test.says != "" && strings.Contains(a.out, test.says) && (a.code != 0 || !done) {
						t.Errorf("after %d requests it says what it does not know: %+v", n, a)
					}
					if a.code != 0 && a.out != "" && !strings.Contains(a.err, " part") {
						t.Errorf("after %d requests a part is not said to be one: %+v", n, a)
					}
				}
			}
		})
	}
}
