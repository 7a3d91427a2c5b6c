package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// A context says what to reach. The command line goes before it, and the environment
// before one that is not named.
func TestContexts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ratectl/rules.jsonl", listing)
	write("ratectl/password", "hunter2\n")
	write("ratectl/config.json", `{"current": "shop", "contexts": {
		"shop":  {"redis": "`+server.Addr+`", "namespace": "orders", "rules": "rules.jsonl", "overrides": "orders:limits"},
		"other": {"redis": "`+server.Addr+`", "rules": "rules.jsonl", "overrides": "other:limits", "timeout": "3s", "db": 0, "cluster": false},
		"guarded": {"redis": "`+server.Addr+`", "user": "operator", "password-file": "password", "rules": "rules.jsonl"}}}`)
	if err := b.client.Do(context.Background(), "ACL", "SETUSER", "operator", "on", ">hunter2", "~*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	b.take(t, 1, "login", 0, "user-1")
	b.env = map[string]string{"XDG_CONFIG_HOME": dir, "USER": "ada"}
	b.run("keys", "login.user").wants(t, 0, `KEY.*\nuser-1 .*`, "")
	b.run("block", "login.user", "user-1").wants(t, 0, ".*", "")
	b.run("override", "ls", "-context", "other").wants(t, 0, `RULE +KEYS +OVERRIDE +UNTIL\nno process reports .*\n`, "")
	b.run("-context", "guarded", "rules").wants(t, 0, `RULE.*`, "")
	b.run("keys", "login.user", "-namespace", "nobody").wants(t, 3, "", ".*")
	b.run("contexts").wants(t, 0, `CURRENT +NAME .*\n- +guarded .*\n- +other .*\n\* +shop +\S+ +orders +orders:limits +rules.jsonl\n`, "")

	secret := filepath.Join(t.TempDir(), "config.json")
	for written, shown := range map[string]string{
		"redis://me:hunter2@localhost/1":     "redis://me:xxxxx@localhost/1",
		"redis://localhost?password=hunter2": "redis://localhost",
		"redis://me:hunter2%zz@localhost":    "no URL",
		"redis.internal:6379":                "redis.internal:6379",
	} {
		if err := os.WriteFile(secret, []byte(`{"contexts": {"a": {"redis": "`+written+`"}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		(&bench{env: map[string]string{"RATECTL_CONFIG": secret}}).run("contexts").
			wants(t, 0, `CURRENT +NAME .*\n- +a +`+regexp.QuoteMeta(shown)+` +.*\n`, "")
	}

	b.env["RATECTL_NAMESPACE"], b.env["RATECTL_OVERRIDES"] = "nobody", "orders:limits"
	b.run("keys", "login.user").wants(t, 3, "", `.*"nobody".*`)
	b.run("keys", "login.user", "-context", "shop").wants(t, 0, `KEY.*\nuser-1 .*`, "")
	// A variable of another context is not used beside one that was named.
	b.run("override", "ls", "-context", "guarded").wants(t, 2, "", `.*which hash has the overrides.*`)

	b.run("rules", "-context", "shp").wants(t, 2, "", `ratectl: no context has the name "shp": did you mean "shop"\?; ratectl contexts lists them\n`)
	for text, want := range map[string]string{
		`{"contexts": {"a": {"password": "hunter2"}}}`:     `unknown setting "password": .* a password belongs into the file`,
		`{"contexts": {"a": {"yes": true}}}`:               `unknown setting "yes"`,
		`{"current": "b", "contexts": {"a": {}}}`:          `current is "b", and no context has that name`,
		`{"curent": "b"}`:                                  `unknown field "curent"`,
		`{"current": "a", "contexts": {"a": {"db": "x"}}}`: `could not parse "x" as int value from the context a for flag db: .*`,
		``: "EOF",
	} {
		write("ratectl/config.json", text)
		a := b.run("rules")
		a.wants(t, 2, "", "ratectl: .*"+want+".*")
		if strings.Contains(a.err, "hunter2") {
			t.Error(a.err)
		}
	}
	b.env["RATECTL_CONFIG"] = filepath.Join(dir, "none")
	b.run("rules").wants(t, 2, "", `.*read the contexts: .*none: .*no such file.*`)
}
