package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// TestSeveral changes all rules, and those that start alike, at once: with one entry in the history, and
// one undo that brings back what each had.
func TestSeveral(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	hash := func() string { return fmt.Sprint(b.client.HGetAll(t.Context(), "orders:limits").Val()) }
	b.run("override", "set", "login.user", "-max", "9", "-window", "1m").wants(t, 0, ".*", "")
	b.run("block", "login.user", "eve").wants(t, 0, ".*", "")
	for _, test := range []struct{ line, out, err, hash string }{
		{"* -scale 50% -for 2h", `RULE +BEFORE +AFTER
login.user +\{"max":9,"window":"1m0s"\} +\{"max":5,.*"window":"1m0s".*
model.tokens +- +\{"max":5,"until":"\S+Z"\}
model.all +- +\{"max":2,.*
jobs +- +\{"max":2,.*
twin +- +\{"max":1,.*
to undo all of it: ratectl undo \d+
`, "ratectl: rule reports is left as it is: each call brings its max\n.*model.tokens declares burst=20, which stays.*", `"max":2`},
		{"* -mode shadow", `RULE.*\nlogin.user +\{"max":9,.* \{"max":9,"mode":"shadow","window":"1m0s"\}\n.*reports +- +\{"mode":"shadow"\}\n.*`, "", "shadow"},
		{"model.* -scale 200% -mode soft", `RULE.*\nmodel.tokens +- +\{"max":20,"mode":"soft"\}\nmodel.all +- +\{"max":6,"mode":"soft"\}\nto undo .*`, "", `"max":20`},
		{"* -scale 0.1", `RULE.*\nlogin.user .* \{"max":1,.*\nmodel.tokens +- +\{"max":1\}\n.*`, ".*", `"max":1`},
		{"jobs* -max 0 -enabled true", `RULE.*\njobs +- +\{"enabled":true,"max":0\}\n.*`, "", `"max":0`},
	} {
		before := hash()
		args := append([]string{"override", "set"}, strings.Fields(test.line)...)
		b.run(append(args, "-n")...).wants(t, 0, `RULE.*nothing is changed\n`, ".*")
		b.run(args...).wants(t, 4, "", `.*say -yes to change \d+ rules, (all that are listed|those whose names start with).*`)
		if hash() != before {
			t.Errorf("%s: changed by -n, or without a yes", test.line)
		}
		b.run(append(args, "-yes", "-m", "load")...).wants(t, 0, test.out, test.err)
		if now := hash(); !strings.Contains(now, test.hash) {
			t.Errorf("%s: the hash is %s", test.line, now)
		}
		b.run("history", "-limit", "1").wants(t, 0, `CHANGE.*\n\d+ +\S+ +ada +\S.* +- +(\d overrides|\{.*\}) +load\n`, ".*")
		b.run("undo").wants(t, 0, `.* again.*`, "")
		if now := hash(); now != before {
			t.Errorf("%s: after the undo %s, before %s", test.line, now, before)
		}
	}
	b.run("override", "set", "model.all", "-scale", "50%").wants(t, 0, `rule model.all: the override is \{"max":2\}.*`, "")
	for line, wants := range map[string]string{
		"* -scale 0%": "-max 0 admits nobody", "* -scale x": "share of the present max", "* -scale -5%": "share", "* -scale 50% -max 3": "leave one out",
		"none* -mode shadow": `no rule that starts with "none"`, "model* -mode shadow -keys acme": "for one rule", "reports -scale 50%": "each call brings its max", "reports* -scale 50%": "can be changed so",
	} {
		if a := b.run(append([]string{"override", "set"}, strings.Fields(line)...)...); a.code != 2 || !strings.Contains(a.err, wants) {
			t.Errorf("%s: exit code %d, %q, want %q", line, a.code, a.err, wants)
		}
	}
}
