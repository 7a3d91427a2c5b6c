package main

import (
	"testing"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

// Without records a max is proposed by what Redis has.
func TestProposeByRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.run("propose", "login.user").wants(t, 3, "", `ratectl: no key of rule login.user in the namespace "orders": .*\n`)
	b.take(t, 6, "login", 0, "acme")
	b.take(t, 20, "login", 30, "bob") // as by an override that is gone
	for _, caller := range []string{"c", "d", "e"} {
		b.take(t, 1, "login", 0, caller)
	}
	b.take(t, 7, "all", 0, "acme")
	now := b.client.Time(t.Context()).Val().Unix()
	b.tellRefused(t, now, 0, "login.user\tacme\t12", "model.all\tacme\t4", "login.user\tgone\t2")
	b.tellRefused(t, now, 30, "login.user\tacme\t100")
	b.run("propose", "login.user").wants(t, 0, `REFUSES +ALGORITHM +MAX +CALLS +CALLERS +AT-MOST +REDIS
0% of the calls +sliding-log +20 +0 +0 +50% +.*
0.1% of the calls +sliding-log +20 +0 .*
1% of the calls +sliding-log +20 +0 .*
0% of the callers +sliding-log +20 .*
0.1% of the callers .*
1% of the callers .*
42 calls of 6 callers in the last 15m
note: This is one window alone, .*
note: A caller who is blocked, .*
note: Refused callers may .*
`, "")
	b.run("propose", "model.all", "-o", "json").wants(t, 0, `\{"algorithm":"sliding-counter","share":0,"of":"calls","max":7,"refused_calls":0,.*\}\n(.*\n){5}`, "")
	b.run("propose", "model.all").wants(t, 0, `REFUSES(.*\n)*7 calls of 1 callers in .*\n(.*\n)*note: The rule is in shadow mode: .*\n(.*\n)*`, "")
	secret := []byte("0123456789abcdef")
	b.tellRefused(t, now, 2, "login.user\t"+spec.HiddenKey(secret, "c")+"\t50")
	b.run("propose", "login.user").wants(t, 0, `REFUSES(.*\n)*0% of the calls +sliding-log +50 (.*\n)*92 calls of 7 callers in .*(.*\n)*`, "")
	b.env["RATECTL_REFUSED_SECRET"] = string(secret)
	b.run("propose", "login.user").wants(t, 0, `REFUSES(.*\n)*0% of the calls +sliding-log +51 (.*\n)*92 calls of 6 callers in .*(.*\n)*`, "")
	b.run("propose", "login.usr").wants(t, 2, "", `.*did you mean "login.user".*\n`)
	b.run("propose", "model.tokens").wants(t, 2, "", `.*does not know what callers of a token-bucket have used in the last window: record them.*\n`)
	b.run("propose", "-window", "login.user=1m", "login.user").wants(t, 2, "", `.*-window is for records.*\n`)
	b.run("propose", "-compare", "login.user").wants(t, 2, "", `.*-compare is for records.*\n`)
}
