package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

// documented returns the rights between two marks of a page.
func documented(t *testing.T, path, mark string) (rights []any) {
	t.Helper()
	text, err := os.ReadFile(path)
	limittest.OK(t, err)
	_, rest, _ := strings.Cut(string(text), "<!-- "+mark+" -->")
	block, _, found := strings.Cut(rest, "<!-- /"+mark+" -->")
	if !found {
		t.Fatalf("%s names no rights", path)
	}
	for _, right := range strings.Fields(strings.ReplaceAll(block, "```", "")) {
		rights = append(rights, right)
	}
	return rights
}

// A user who has the rights of one that only looks can look at everything, and change nothing.
func TestReader(t *testing.T) {
	t.Parallel()
	args := append([]any{"ACL", "SETUSER", "reader", "on", ">secret", "~orders:rate_limit:*", "%R~orders:limits", "%R~{orders:limits}:history"},
		documented(t, "../../docs/ratectl.md", "reader")...)
	server := redistest.Start(t)
	client := server.Client(t)
	limittest.OK(t, client.Do(t.Context(), args...).Err())
	b := newBench(t, client, server.Addr)
	b.take(t, 7, "login.user", 0, "acme")
	b.take(t, 30, "model.tokens", 0, "acme", "ann")
	b.take(t, 5, "model.all", 0)
	b.take(t, 7, "reports", 5, "acme")
	b.take(t, 2, "jobs", 0, "acme")
	b.run("block", "login.user", "bob").wants(t, 0, ".*", "")
	b.env["RATECTL_USER"], b.env["RATECTL_PASSWORD"] = "reader", "secret"
	for _, line := range []string{
		"rules", "top -count 1", "find acme", "keys login.user", "keys model.tokens", "keys model.all", "keys reports -max 5", "keys jobs", "inspect login.user acme", "usage login.user acme",
		"memory", "override ls", "history", "export", "doctor",
	} {
		b.run(strings.Fields(line)...).wants(t, 0, ".+", "")
	}
	before := b.dump(t)
	for _, line := range []string{"block login.user acme", "reset -yes login.user acme", "override rm login.user", "undo", "release -yes login.user acme"} {
		if a := b.run(strings.Fields(line)...); a.code == 0 {
			t.Errorf("%s: %s", line, a.out)
		}
	}
	if after := b.dump(t); len(after) != len(before) {
		t.Errorf("%d keys, and %d before", len(after), len(before))
	}
}

// A user with no more than the documented rights can do everything.
func TestRights(t *testing.T) {
	t.Parallel()
	args := append([]any{"ACL", "SETUSER", "operator", "on", ">secret", "~*"}, documented(t, "../../docs/ratectl.md", "reader")...)
	args = append(args, documented(t, "../../docs/ratectl.md", "rights")...)
	args = append(args, documented(t, "../../docs/running.md", "commands")...)
	server := redistest.Start(t)
	client := server.Client(t)
	limittest.OK(t, client.Do(t.Context(), args...).Err())
	b := newBench(t, client, server.Addr)
	b.env["RATECTL_USER"], b.env["RATECTL_PASSWORD"] = "operator", "secret"
	document.Transcript(t, "testdata/day.txt", play(t, b, server.Addr))
}
