package main

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// With -n every command says what it would change, and changes nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	ctx := context.Background()
	for _, user := range []string{"vip-1", "vip-2", "user-1"} {
		b.take(t, 1, "login", 0, user)
	}
	b.take(t, 1, "all", 0)
	b.take(t, 6, "login", 0, "user-2")
	b.take(t, 4, "login", 0, "user-3")
	b.take(t, 2, "reports", 50, "acme")
	b.run("override", "set", "login.user", "-keys", "vip-*", "-max", "9").wants(t, 0, ".*", "")
	b.client.Set(ctx, "orders:rate_limit:login:lost%block", "x", 0)
	before := b.dump(t)
	for _, test := range []struct{ line, out string }{
		{"block login.user user-1 -n", `user-1 of rule login.user: the override would be {"block":true}; there was none; callers that are counted now: 1, refused now: 0, with the change: 1; nothing is changed`},
		{"block login.user nobody -n", `callers that are counted now: 0, refused now: 0, with the change: 0; that is not all: those for whom nothing is counted are refused too; nothing is changed`},
		{"block model.all -n", `callers that are counted now: 1`},
		{"allow login.user user-1 -n -for 1h", `would be {"allow":true,"until":`},
		{"shadow -n on login.user", `rule login.user: the override would be {"mode":"shadow"}; there was none; callers that are counted now: 6, refused now: 1, with the change: 0; nothing`},
		{"override set login.user -keys vip-* -max 0 -n", `would be {"max":0}; it was {"max":9}; callers that are counted now: 2, refused now: 0, with the change: 2; that is not all: those for whom nothing is counted`},
		{"override set login.user -max 4 -n", `callers that are counted now: 6, refused now: 1, with the change: 2; nothing`},
		{"override set reports -max 2 -n", `callers that are counted now: 1, refused now: 0, with the change: 1; nothing`},
		{"override set reports -mode shadow -n", `callers that are counted now: 1, refused now: 0, with the change: 0; that is not all: callers who bring their max are judged by that of their last refusal, or by none; nothing`},
		{"override set * -enabled false -n", `all limits: the override would be {"enabled":false}; there was none; callers that are counted now: 8, refused now: 1, with the change: 0; that is not all: callers who bring`},
		{"override rm login.user -keys vip-* -n", `would be gone; it was {"max":9}; callers that are counted now: 2`},
		{"override rm login.user -keys vip-* -only max -n -o json", `{"before":{"rule":"login.user","pattern":"vip-*","max":9,"says":{"max":9}},"after":null,"id":0,"dry_run":true,"callers":2,"refused":0,"would_be_refused":0}`},
		{"undo -n", `vip-* of rule login.user: the override would be gone again; 1, by ada, had made it {"max":9}; nothing is changed`},
		{"reset login.user user-1 -n", `user-1 of rule login.user would be reset; it is ok, with 1 used; nothing is changed`},
		{"reset login.user user-1 -n -o json", `"dry_run":true`},
		{"fix-expiry -n", `login.user`},
	} {
		a := b.run(strings.Fields(test.line)...)
		if a.code != 0 || a.err != "" || !strings.Contains(a.out, test.out) {
			t.Errorf("%s: exit code %d, %q, %q, want %q", test.line, a.code, a.err, a.out, test.out)
		}
	}
	// What would be refused is refused.
	b.run("override", "set", "login.user", "-max", "1000001", "-n").wants(t, 1, "", ".*the maximum of a sliding-log.*")
	b.run("unblock", "login.user", "user-1", "-n").wants(t, 3, "", ".*")
	for key := range b.dump(t) { // but those that are gone in a moment
		if _, was := before[key]; !was && !strings.Contains(key, "%check:") {
			t.Errorf("%s is new", key)
		}
	}
	for key, was := range before {
		if b.dump(t)[key] != was {
			t.Errorf("%s has changed", key)
		}
	}
	// A command that can change something has the flag.
	for _, c := range commands() {
		flags := strings.Fields(c.flags)
		if changes := slices.Contains(flags, "yes") || slices.Contains(flags, "m"); changes != slices.Contains(flags, "n") {
			t.Errorf("%s: changes something %t, has -n %t", c.name, changes, !changes)
		}
	}
}

// Two operators see what the other has done, and do not undo it unawares.
func TestTwoOperators(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ada := newBench(t, server.Client(t), server.Addr)
	bob := newBench(t, server.Client(t), server.Addr)
	bob.env["RATECTL_WHO"] = "bob"
	ada.run("override", "set", "login.user", "-max", "50", "-m", "ticket 7").wants(t, 0, ".*", "")
	bob.run("override", "set", "login.user", "-max", "80").wants(t, 0, `.*it was \{"max":50\}.*`, "")
	ada.run("undo", "1").wants(t, 1, "", `.*it has been changed again since: by bob in 2, which is to be undone first\n`)
	ada.run("history").wants(t, 0, `CHANGE +AT +WHO +OF +BEFORE +AFTER +WHY\n2 +\S+Z +bob +rule login.user +\{"max":50\} +\{"max":80\} +-\n1 +\S+Z +ada +rule login.user +- +\{"max":50\} +ticket 7\n`, "")
	ada.run("undo").wants(t, 4, "", `.*say -yes to undo change 2 of rule login.user, by bob\n`)
	ada.run("undo", "-n").wants(t, 0, `.*would be \{"max":50\} again; 2, by bob, .*`, "")
	ada.run("undo", "-yes").wants(t, 0, `rule login.user: the override is \{"max":50\} again; 2, by bob, had made it \{"max":80\}\n`, "")
	ada.run("undo").wants(t, 0, `.* is gone again; 1, by ada, .*`, "")
	ada.run("undo").wants(t, 3, "", `.*no such change.*ratectl history lists.*`)
	ada.run("undo", "77").wants(t, 3, "", `ratectl: undo 77: .*`)
	ada.run("undo", "x").wants(t, 2, "", `.*the number of a change.*`)
	ada.run("history", "-limit", "1", "-o", "json").wants(t, 0, `\{"id":4,"at":"[^"]+","who":"ada","why":"","rule":"login.user","pattern":null,"before":\{"max":50\},"after":null,"undoes":1\}\n`, "ratectl: these are the last 1 of 4 changes, see -limit\n")
}

// Flags may stand anywhere, and errors are JSON if answers are.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	for _, line := range []string{
		"-o json override ls", "override -o json ls", "override ls -o json", "-o=json override ls", "-timeout 3s override -o json ls",
		"--o json override ls", "--o=json override ls --timeout 3s",
	} {
		if a := b.run(strings.Fields(line)...); a.code != 0 || a.out != "" {
			t.Errorf("%s: exit code %d, %q, %q", line, a.code, a.out, a.err)
		}
	}
	b.run("-yes", "shadow", "-m", "rules", "on", "login.user").wants(t, 0, ".*", "") // rules is no command here
	b.run("override", "set", "login.user", "-max", "1", "--", "-n").wants(t, 2, "", ".*usage.*")
	for _, line := range []string{"-o json inspect nobody x", "inspect nobody x -o json", "-o json", "nothing -o json", "-o json keys login.user -limit x"} {
		a := b.run(strings.Fields(line)...)
		var e struct {
			Error string
			Code  int `json:"exit_code"`
		}
		if err := json.Unmarshal([]byte(a.err), &e); err != nil || e.Code != 2 || a.code != 2 || e.Error == "" || a.out != "" {
			t.Errorf("%s: exit code %d, %q, %q", line, a.code, a.out, a.err)
		}
	}
	b.run("-o", "json", "inspect", "nobody", "x", "-o", "table").wants(t, 2, "", "ratectl: .*")
	b.run("keys", "login.user", "-limt", "3").wants(t, 2, "", `ratectl: flag provided but not defined: -limt: did you mean "-limit"\?; ratectl keys -h lists the flags\n`)
	b.run("memory", "-1", "-o", "json").wants(t, 2, "", `\{"error":"flag provided but not defined: -1; .*\n`) // and not a prefix
	for _, line := range []string{"version", "-version", "--version"} {
		b.run(line).wants(t, 0, `ratectl \S+, go1\.\S+\n`, "")
	}
}

// The name of a rule, which stands in a file or in the hash, does not move the cursor.
func TestNamesInATerminal(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	const name = "evil\x1b[2Jrule"
	listing := strings.ReplaceAll(listing, "login.user", `evil\u001b[2Jrule`)
	if err := os.WriteFile(b.env["RATECTL_RULES"], []byte(listing), 0o600); err != nil {
		t.Fatal(err)
	}
	b.take(t, 1, "login", 0, "x")
	b.terminal, b.in = true, "no\n"
	for _, line := range [][]string{
		{"override", "set", name, "-max", "9"}, {"override", "set", name, "-max", "0"}, {"shadow", "on", name}, {"block", name, "x"}, {"unblock", name, "x"},
		{"unblock", name, "x"}, {"override", "ls"}, {"rules"}, {"history"}, {"undo"}, {"undo", "99"}, {"inspect", name, "x"}, {"reset", name, "x"}, {"keys", name}, {"top", "-count", "1"},
		{"override", "rm", name}, {"override", "rm", name}, {"inspect", "no" + name, "x"}, {"memory"}, {"reset", "-yes", name, "x"}, {"reset", "-yes", name, "x"}, {"block", name, "x", "-n"},
	} {
		if a := b.run(line...); strings.ContainsRune(a.out+a.err, '\x1b') {
			t.Errorf("%q: %q %q", line, a.out, a.err)
		}
	}
}

// A key that Redis knows by its hash is blocked by that.
func TestHashedKey(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	long := strings.Repeat("long", 100)
	b.take(t, 1, "login", 0, long)
	_, rest, _ := strings.Cut(b.run("keys", "login.user", "-o", "json").out, `"key":"`)
	hash, _, _ := strings.Cut(rest, `"`)
	b.run("block", "login.user", hash).wants(t, 0, `%sha256-[0-9a-f]{64} of rule login.user: the override is \{"block":true\}.*`, "")
	b.run("inspect", "login.user", hash).wants(t, 0, `.*state +blocked, by an override: ratectl unblock or undo ends that\n.*`, "")
	b.run("inspect", "login.user", long).wants(t, 0, `.*state +blocked, by an override: ratectl unblock or undo ends that\n.*`, "")
	b.follows(t, map[string]bool{long: false, long + "er": true, "user-1": true})
	b.run("override", "set", "login.user", "-keys", "long*", "-max", "7").wants(t, 0, ".*", "")
	b.follows(t, map[string]bool{long: false, long + "er": true}) // a key goes before a pattern
	b.run("unblock", "login.user", hash).wants(t, 0, ".*gone.*", "")
	b.follows(t, map[string]bool{long: true})
}

// A replica says that it is one.
func TestReplica(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.Start(t)
	b := newBench(t, replica.Client(t), replica.Addr)
	replica.Follow(t, master)
	for _, line := range []string{"block login.user x", "override set login.user -max 7", "reset login.user x -yes"} {
		a := b.run(strings.Fields(line)...)
		if a.code == 0 || strings.Contains(a.err, "EXECABORT") || !strings.Contains(a.err, "is a replica") && !strings.Contains(a.err, "nothing is counted") {
			t.Errorf("%s: exit code %d, %s", line, a.code, a.err)
		}
	}
}
