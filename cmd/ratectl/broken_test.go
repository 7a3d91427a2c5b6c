package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

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
		for _, looks := range []string{"keys login.user", "inspect login.user user-1", "rules", "top -count 1"} {
			b.run(strings.Fields(looks)...).wants(t, 0, "(?s).*login.user.*|KEY.*user-1.*", "ratectl: the limiters reject the overrides, and go on with those before; here limits are as declared: .*")
		}
		b.run("override", "set", "model.all", "-max", "8").wants(t, 1, "", `ratectl: overrides in "orders:limits": field .*\n`)
		b.run("memory").wants(t, 0, `KEYS.*\n1 .* login.user\n.*`, "")
		b.run(append([]string{"override", "rm", "-n"}, broken.remove...)...).wants(t, 0, ".*the override would be gone; it was broken; .*\n",
			"ratectl: the limiters reject the overrides, and go on with those before; here limits are as declared: .*\n")
		b.run(append([]string{"override", "rm"}, broken.remove...)...).wants(t, 0, ".*the override is gone; it was broken; .*\n", "")
		b.run("override", "ls").wants(t, 0, `RULE.*\nmodel.all +- +\{"max":9\} +-\nno process reports .*\n`, "")
	}
}

// A key that another program has written is said to be that.
func TestBrokenKey(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.client.Set(t.Context(), "orders:rate_limit:login:acme%block", "x", time.Hour)
	b.run("inspect", "login.user", "acme").wants(t, 0, `.*state +broken, since another program has written this key: ratectl reset removes it\nlimit +not known\nused +-\nretry after +-\nreset after +-\n.*`, "")
	b.run("find", "acme").wants(t, 0, `RULE.*\nlogin.user +acme +broken +- +- +- +- +-\n`, "")
}

// A clock of Redis that is not that of this machine is told to who sets an end by it, and so is
// what nobody shall know or knows: a password that all can read, and a history without a name.
func TestWarnings(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.run("block", "login.user", "a", "-for", "1h").wants(t, 0, ".*", "")
	b.env["RATECTL_REDIS"] = ahead(t, server.Addr, 10*time.Minute)
	b.run("block", "login.user", "b", "-for", "1h").wants(t, 0, ".*", "")
	b.run("block", "login.user", "c", "-until", "2999-01-01T00:00:00Z").wants(t, 0, ".*", "")
	b.env["RATECTL_REDIS"] = server.Addr

	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.client.ConfigSet(t.Context(), "requirepass", "x")
	b.run("override", "ls", "-password-file", file).wants(t, 0, ".*", "")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	b.run("override", "ls", "-password-file", file).wants(t, 0, ".*", `ratectl: every user of this machine can read the password in .*: chmod 600 it\n`)

	b.env["USER"], b.env["RATECTL_PASSWORD"] = "", "x"
	b.run("unblock", "login.user", "a").wants(t, 0, ".*", `ratectl: the history does not say who this is: set RATECTL_WHO\n`)
	b.env["RATECTL_WHO"] = "ada"
	b.run("unblock", "login.user", "b").wants(t, 0, ".*", "")
}

// ahead returns the address of a server whose clock is ahead.
func ahead(t *testing.T, server string, by time.Duration) string {
	told := regexp.MustCompile(`\*2\r\n\$10\r\n\d{10}\r\n`) // a reply of TIME
	return between(t, server, unchanged, func(replies []byte) []byte {
		return told.ReplaceAllFunc(replies, func(reply []byte) []byte {
			seconds, _ := strconv.ParseInt(string(reply[9:19]), 10, 64)
			return append(strconv.AppendInt(reply[:9:9], seconds+int64(by.Seconds()), 10), "\r\n"...)
		})
	})
}
