package main

import (
	"context"
	"testing"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// Each verb leaves what another has set, and takes back what it has set itself: a
// customer with a quota of their own has it again after whatever was done.
func TestNothingIsDestroyed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	const quota = `\{"max":1000\}`
	b.run("override", "set", "login.user", "-keys", "acme", "-max", "1000").wants(t, 0, ".*", "")
	for _, step := range []struct {
		line []string
		says string // of acme in the hash, afterwards
	}{
		{[]string{"block", "login.user", "acme"}, `\{"block":true,"max":1000\}`},
		{[]string{"unblock", "login.user", "acme"}, quota},
		{[]string{"block", "login.user", "acme", "-for", "1h"}, `\{"block":true,"block_until":"[^"]+Z","max":1000\}`},
		{[]string{"unblock", "login.user", "acme"}, quota},
		{[]string{"allow", "login.user", "acme", "-for", "2h"}, `\{"allow":true,"allow_until":"[^"]+Z","max":1000\}`},
		{[]string{"block", "login.user", "acme"}, `\{"allow":true,"allow_until":"[^"]+Z","block":true,"max":1000\}`},
		{[]string{"unallow", "login.user", "acme"}, `\{"block":true,"max":1000\}`},
		{[]string{"block", "login.user", "acme", "-for", "1s"}, `\{"block":true,"block_then":true,"block_until":"[^"]+Z","max":1000\}`},
		{[]string{"unblock", "login.user", "acme"}, quota},
		{[]string{"override", "set", "login.user", "-keys", "acme", "-max", "2000", "-for", "2h"}, `\{"max":2000,"max_then":1000,"until":"[^"]+Z"\}`},
		{[]string{"shadow", "on", "login.user", "acme", "-yes"}, `\{"max":2000,"max_then":1000,"max_until":"[^"]+Z","mode":"shadow"\}`},
		{[]string{"override", "set", "login.user", "-keys", "acme", "-max", "3000"}, `\{"max":3000,"max_then":1000,"max_until":"[^"]+Z","mode":"shadow"\}`},
		{[]string{"override", "rm", "login.user", "-keys", "acme", "-only", "mode"}, `\{"max":3000,"max_then":1000,"until":"[^"]+Z"\}`},
		{[]string{"override", "set", "login.user", "-keys", "acme", "-max", "1000", "-until", "never"}, quota},
	} {
		if a := b.run(step.line...); a.code != 0 {
			t.Errorf("%q: exit code %d, %s", step.line, a.code, a.err)
		}
		answer{0, b.client.HGet(context.Background(), "orders:limits", `["login.user","acme"]`).Val(), ""}.wants(t, 0, step.says, "")
	}
}
