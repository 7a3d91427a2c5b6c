package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

// A command that can change something has the flag -n.
func TestDryRun(t *testing.T) {
	t.Parallel()
	for _, c := range commands() {
		flags := strings.Fields(c.flags)
		if changes := slices.Contains(flags, "yes") || slices.Contains(flags, "m"); changes != slices.Contains(flags, "n") {
			t.Errorf("%s: changes something %t, has -n %t", c.name, changes, !changes)
		}
	}
}

// The name of a rule, which stands in a file or in the hash, does not move the cursor.
func TestNamesInATerminal(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	const name = "evil\x1b[2Jrule"
	listing := strings.ReplaceAll(listing, "login.user", `evil\u001b[2Jrule`)
	limittest.OK(t, os.WriteFile(b.env["RATECTL_RULES"], []byte(listing), 0o600))
	b.take(t, 1, "login.user", 0, "x")
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
