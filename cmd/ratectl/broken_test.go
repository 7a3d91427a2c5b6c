package main

import (
	"context"
	"testing"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// Overrides that every limiter rejects can be read about and removed, and do not
// keep commands away that need none.
func TestBrokenOverrides(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.take(t, 1, "login", 0, "user-1")
	set := func(field, value string) {
		if err := b.client.HSet(context.Background(), "orders:limits", field, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("model.all", `{"max":9}`) // stays
	for _, broken := range []struct {
		field, value string
		remove       []string
	}{
		{"login.user", `{"max":"x"}`, []string{"login.user"}},
		{"login.user", `no JSON`, []string{"login.user"}},
		{"*", `{"enabled":1}`, []string{"*"}},
		{`["login.user","user-1"]`, `{"window":"soon"}`, []string{"login.user", "-keys", "user-1"}},
		{"gone", `{"maximum":1}`, []string{"gone"}},
		{"null", `null`, []string{"null"}},
		{`["login.user"`, `{"max":1}`, []string{`["login.user"`}},
		{`["*","x"]`, `{"max":1}`, []string{`["*","x"]`}},
	} {
		set(broken.field, broken.value)
		b.run("override", "ls").wants(t, 1, "", `ratectl: overrides in "orders:limits": field .*\n`)
		b.run("keys", "login.user").wants(t, 1, "", "ratectl: the limiters reject the overrides, and go on with those before: .*")
		b.run("override", "set", "model.all", "-max", "8").wants(t, 1, "", `ratectl: overrides in "orders:limits": field .*\n`)
		b.run("memory").wants(t, 0, `KEYS.*\n1 .* login.user\n.*`, "")
		b.run(append([]string{"override", "rm"}, broken.remove...)...).wants(t, 0, ".*the override is gone; it was broken; .*\n", "")
		b.run("override", "ls").wants(t, 0, `RULE.*\nmodel.all +- +\{"max":9\} +-\nno process reports .*\n`, "")
	}
}
