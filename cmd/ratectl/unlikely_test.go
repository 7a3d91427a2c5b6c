package main

import (
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// What would be confirmed and meet no caller is refused, or asked about.
func TestUnlikelyKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	for _, test := range []struct {
		line string
		code int
		says string
	}{
		{"block login.user acme*", 2, `"acme*" would be one key, and not all that begin so: write ratectl override set login.user -keys 'acme*'`},
		{"block model.tokens acme:*", 2, `would be one key`},
		{"reset login.user * -yes", 2, `would be one key`},
		{"override set login.user -max 9 -keys=", 2, "-keys is empty"},
		{"override set model.tokens -max 9 -keys acme", 2, "the keys of rule model.tokens are #tenant,#user, joined by colons: 2 parts, and not 1"},
		{"override set model.tokens -max 9 -keys a:b:c", 2, "2 parts, and not 3"},
		{"override set model.tokens -max 9 -keys a:b:c*", 2, "2 parts, and not 3"},
		{"override set model.all -max 9 -keys a", 2, "one limit for all callers"},
		{"block login.user -parts 203.0.113.7:4711", 4, "has a port, and callers are counted by address: 203.0.113.7"},
		{"block login.user -parts [2001:db8::5]:4711", 4, "has a port"},
		{"block login.user -parts 10.0.0.0/8", 4, "is a network, and callers of IPv4 are counted by address"},
		{"allow login.user -parts 2001:db8::5", 4, "is one address, and callers of IPv6 are counted by network, such as 2001:db8::/56"},
		{"shadow on login.user 2001%3Adb8%3A%3A5", 4, "callers of IPv6 are counted by network"},
		{"block login.user -parts 2001:db8::5/56", 4, "is written as 2001:db8::/56 in keys"},
		{"block login.user -parts 2001:DB8::/56", 4, "is written as 2001:db8::/56 in keys"},
		{"block login.user -parts ::ffff:203.0.113.7", 4, "is written as 203.0.113.7 in keys"},
		{"override set login.user -max 9 -keys 203.0.113.7/32", 4, "is a network"},
	} {
		for _, more := range []string{"", " -n"} {
			if more != "" && test.code == 4 {
				continue // which tells what it would do
			}
			if a := b.run(strings.Fields(test.line + more)...); a.code != test.code || !strings.Contains(a.err, test.says) {
				t.Errorf("%s: exit code %d, %s%s", test.line, a.code, a.out, a.err)
			}
		}
	}
	if n := b.client.Exists(t.Context(), "orders:limits").Val(); n != 0 {
		t.Error("something is overridden")
	}
	for _, line := range []string{
		"block login.user -parts 203.0.113.7", "block login.user -parts 2001:db8::/56", "block login.user -parts acme*", "block login.user acme%2A", "block login.user -yes -parts 10.0.0.0/8",
		"override set model.tokens -max 9 -keys acme:*", "override set model.tokens -max 9 -keys acme*", "override set model.all -max 2 -keys *", "override set login.user -max 9 -keys 10*",
	} {
		if a := b.run(strings.Fields(line)...); a.code != 0 {
			t.Errorf("%s: exit code %d, %s", line, a.code, a.err)
		}
	}
	b.take(t, 1, "login", 0, "2001:db8::7") // a rule that counts so
	b.run("block", "login.user", "-parts", "2001:db8::7").wants(t, 0, ".*", "")
	b.run("unblock", "login.user", "-parts", "10.0.0.0/8").wants(t, 0, ".*", "") // what is there goes without a question
}

// An edit says that limits are switched off, and that it has no effect therefore.
func TestEditsWhileOff(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.run("override", "set", "login.user", "-enabled", "false", "-yes").wants(t, 0, ".*", "")
	b.run("override", "set", "login.user", "-keys", "vip-1", "-max", "9").wants(t, 0, ".*", `ratectl: it has no effect yet: rule login.user is switched off, until ratectl override rm login.user -only enabled\n`)
	b.run("block", "login.user", "user-1").wants(t, 0, ".*", "") // which holds all the same
	b.run("override", "set", "*", "-enabled", "false", "-yes").wants(t, 0, ".*", "")
	const off = `ratectl: it has no effect yet: all limits are switched off, until ratectl override rm '\*'\n`
	b.run("block", "login.user", "user-2").wants(t, 0, ".*", off)
	b.run("override", "set", "jobs", "-max", "9", "-o", "json").wants(t, 0, ".*", off)
	b.run("unblock", "login.user", "user-2").wants(t, 0, ".*", "")
	b.run("override", "rm", "*").wants(t, 0, ".*", "")
	b.run("override", "rm", "login.user", "-only", "enabled").wants(t, 0, ".*", "")
	b.run("override", "set", "login.user", "-keys", "vip-1", "-max", "8").wants(t, 0, ".*", "")
}
