package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// A user with no more than the documented rights can do everything.
func TestRights(t *testing.T) {
	t.Parallel()
	args := []any{"ACL", "SETUSER", "operator", "on", ">secret", "~*"}
	for path, mark := range map[string]string{"../../docs/ratectl.md": "rights", "../../docs/running.md": "commands"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "<!-- "+mark+" -->")
		rights, _, found := strings.Cut(rest, "<!-- /"+mark+" -->")
		if !found {
			t.Fatalf("%s names no rights", path)
		}
		for _, right := range strings.Fields(strings.ReplaceAll(rights, "```", "")) {
			args = append(args, right)
		}
	}
	server := redistest.Start(t)
	client := server.Client(t)
	if err := client.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, client, server.Addr)
	b.env["RATECTL_USER"], b.env["RATECTL_PASSWORD"] = "operator", "secret"
	story(t, b)
}
