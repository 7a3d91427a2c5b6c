package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime/ratepage"
)

// What is wrong is said clearly, has its exit code, and changes nothing.
func TestFailures(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	client := server.Client(t)
	b := newBench(t, client, server.Addr)
	b.take(t, 5, "login", 0, "user-1")
	for _, args := range [][]any{
		{"ACL", "SETUSER", "operator", "on", ">hunter2", "~*", "+@all"},
		{"ACL", "SETUSER", "reader", "on", ">hunter2", "~*", "+hello", "+ping", "+client", "+info", "+scan"},
	} {
		if err := client.Do(ctx, args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	client.HSet(ctx, "broken", "login.user", `{"max": "7"}`)
	client.Set(ctx, "text", "", 0)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	before := b.dump(t)
	for _, test := range []struct {
		args string
		code int
		err  string
		env  map[string]string
	}{
		{"", 2, "name a command; ratectl -h lists them", nil},
		{"inspekt login.user x", 2, `unknown command "inspekt": did you mean "inspect"?`, nil},
		{"override st login.user", 2, `unknown command "override st": did you mean "override set"?`, nil},
		{"reset", 2, "usage: ratectl reset RULE [KEY]", nil},
		{"reset login.user a b", 2, "usage: ratectl reset", nil},
		{"reset login.user user-1 -force", 2, "flag provided but not defined: -force; ratectl reset -h lists the flags", nil},
		{"keys login.user -o xml", 2, `-o "xml": write table or json`, nil},
		{"keys login.user -state denied", 2, `-state "denied": write some of off, ok, unknown, near, refused, held, blocked, broken`, nil},
		{"keys reports -state refused", 2, "say with -max which one to judge by", nil},
		{"top -every 1ms", 2, "-every is at least 100ms", nil},

		{"inspect login.usr user-1", 2, `no rule has the name "login.usr": did you mean "login.user"?; ratectl rules lists them`, nil},
		{"block login.usr user-1", 2, `no rule has the name`, nil},
		{"override set login.usr -max 1", 2, `no rule has the name`, nil},
		{"inspect twin", 2, `2 rules have the name "twin", at b.go:1 and b.go:2: name the one by its prefix, such as "rate_limit:twin1:"`, nil},
		{"keys login.user -namespace ordes", 3, `no key of rule login.user in the namespace "ordes": there are some in the namespace "orders"`, nil},
		{"keys model.tokens", 3, `no key of rule model.tokens in the namespace "orders": there is none in any other either`, nil},
		{"reset login.user user-1 -yes -namespace ordes", 3, `in the namespace "ordes", under ordes:rate_limit:login:user-1%block: there is nothing to reset`, nil},

		{"inspect login.user a%b", 2, `"a%b" is no key of login.user`, nil},
		{"reset login.user ::1 -yes", 2, "the number of parts of a key of rule login.user (#user) is 1, and not 3", nil},
		{"reset login.user -yes", 2, "rule login.user has a limit for each #user: name the KEY", nil},
		{"reset model.all x -yes", 2, "rule model.all has one limit for all callers: leave the KEY out", nil},
		{"reset -parts model.tokens a -yes", 2, "is 2, and not 1", nil},
		{"reset login.user orders:rate_limit:login:user-1%packed -yes", 2, "it counts by another algorithm", nil},

		{"override set login.user", 2, "what is to change? Say -max, -scale, -burst, -window, -mode or -enabled, or -weight of a -share", nil},
		{"override set login.user -max -1", 2, `-max "-1": write a whole number`, nil},
		{"override set login.user -mode on", 2, `-mode "on": write enforce, soft or shadow`, nil},
		{"override set login.user -enabled maybe", 2, `-enabled "maybe": write true or false`, nil},
		{"override set login.user -window 1us", 1, "window 1µs is not between", nil},
		{"override set login.user -max 1 -for -1h", 2, "-for -1h0m0s: write a duration", nil},
		{"override set login.user -max 1 -until yesterday", 2, `-until "yesterday": write never, or a time to come`, nil},
		{"override set login.user -max 1 -for 1h -until 2099-01-01T00:00:00Z", 2, "leave one out", nil},
		{"override set * -max 1", 4, "say -yes to change 6 rules, all that are listed,", nil},
		{"override set login.user -keys a*b -max 1", 1, "a * before the end", nil},
		{"shadow maybe login.user", 2, `shadow "maybe": write on or off`, nil},
		{"override ls -overrides broken", 1, `field "login.user": line 1: max is text`, nil},
		{"top -user reader", 1, `ratectl: redis does not allow the user "reader" to do this`, map[string]string{"RATECTL_PASSWORD": "hunter2"}},
		{"override set login.user -max 1 -overrides text", 1, "WRONGTYPE", nil},
		{"override ls", 2, "which hash has the overrides?", map[string]string{"RATECTL_OVERRIDES": ""}},
		{"completion tcsh", 2, "write bash, zsh or fish", nil},

		{"rules", 2, "which rules are there? Name the file with -rules", map[string]string{"RATECTL_RULES": ""}},
		{"rules -rules " + filepath.Join(dir, "none"), 2, "no such file", nil},
		{"rules -rules " + file("empty", ""), 2, "there is no rule in it", nil},
		{"rules -rules " + file("text", "POSITION RULE"), 2, "rule 1: not what rategen list -json prints", nil},
		{"rules -rules " + file("other", `{"a": 1}`), 2, "it has no name, prefix or window", nil},
		{"rules -rules " + file("newer", strings.Replace(listing, "sliding-log", "psychic", 1)), 2, `does not know "psychic"`, nil},

		{"rules -redis 127.0.0.1:1", 1, "redis at 127.0.0.1:1: dial tcp", nil},
		{"rules -redis redis://me:hunter2@localhost", 2, "RATECTL_PASSWORD", nil},
		{"rules -redis me:hunter2@localhost:6379", 2, "RATECTL_PASSWORD", nil},
		{"rules -redis redis://me:hunter2%zz@localhost", 2, "-redis is no URL", nil},
		{"rules -redis redis://localhost?password=hunter2", 2, "RATECTL_PASSWORD", nil},
		{"rules -redis rediss://localhost?skip_verify=true", 2, "skip_verify would believe any server: name the authority with -tls-ca, or the certificate's name with -tls-name", nil},
		{"rules -redis http://localhost", 2, "invalid URL scheme", nil},
		{"rules -redis localhost", 2, "write host:port", nil},
		{"rules -redis a:1,b:2", 2, "several addresses: add -cluster, or -sentinel", nil},
		{"rules -cluster -sentinel m", 2, "a cluster has no Sentinels", nil},
		{"rules -tls-cert x", 2, "-tls-cert and -tls-key belong together", nil},
		{"rules -tls-ca " + file("ca", "x"), 2, "has no certificate in PEM", nil},
		{"rules -password-file " + filepath.Join(dir, "none"), 2, "read the password", nil},
		{"rules -user operator", 1, "redis refuses the user or the password: check -user, and RATECTL_PASSWORD", map[string]string{"RATECTL_PASSWORD": "wrong"}},
		{"rules -user reader", 1, `redis does not allow the user "reader" to do this`, map[string]string{"RATECTL_PASSWORD": "hunter2"}},
		{"reset login.user user-1 -yes -user reader -overrides=", 1, `redis does not allow the user "reader" to do this`, map[string]string{"RATECTL_PASSWORD": "hunter2"}},
		{"keys login.user -user reader -overrides=", 1, `redis does not allow the user "reader" to do this`, map[string]string{"RATECTL_PASSWORD": "hunter2"}},
		{"top -page ftp://localhost", 2, "-page is no http:// or https:// URL", nil},
		{"top -page http://me:hunter2@localhost", 2, "RATECTL_PAGE_AUTHORIZATION", nil},
		{"top -page http://127.0.0.1:1", 1, "connection refused", nil},
	} {
		c := *b
		c.env = make(map[string]string)
		for name, value := range b.env {
			c.env[name] = value
		}
		for name, value := range test.env {
			c.env[name] = value
		}
		a := c.run(strings.Fields(test.args)...)
		if a.code != test.code || !strings.Contains(a.err, test.err) || a.out != "" {
			t.Errorf("%s: exit code %d, %q, standard output %q; want %d, %q", test.args, a.code, a.err, a.out, test.code, test.err)
		}
		if strings.Contains(a.err, "hunter") {
			t.Errorf("%s: a password is shown: %s", test.args, a.err)
		}
	}
	for key, was := range before {
		if now := b.dump(t)[key]; now != was {
			t.Errorf("%s has changed", key)
		}
	}
	if n := client.Exists(ctx, "orders:limits").Val(); n != 0 {
		t.Error("an override was written")
	}
	b.env["RATECTL_PASSWORD"], b.env["RATECTL_USER"] = "wrong", "operator"
	b.run("rules", "-password-file", file("password", "hunter2\n")).wants(t, 0, "RULE.*", "")
}

// A Redis that wants a password says so.
func TestPassword(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	if err := b.client.ConfigSet(context.Background(), "requirepass", "hunter2").Err(); err != nil {
		t.Fatal(err)
	}
	b.run("rules").wants(t, 1, "", "ratectl: redis wants a password: set RATECTL_PASSWORD, .*")
	b.env["RATECTL_PASSWORD"] = "hunter2"
	b.run("rules").wants(t, 0, "RULE.*", "")
}

// On a terminal a walk over the database shows how far it is, and leaves nothing.
func TestProgress(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	b := newBench(t, cluster.Client(t), cluster.Nodes[0].Addr)
	b.take(t, 1, "login", 0, "user-1")
	b.terminal = true
	b.run("keys", "login.user").wants(t, 0, `KEY.*\nuser-1 .*`, `(\rlooked at about \d+ of \d+ keys)+\r +\r`)
	b.run("top", "-every", "100ms", "-count", "2", "-o", "json").wants(t, 0, `(\{"rule".*\}\n){14}`, `(\rlooked at about \d+ of \d+ keys\r +\r){2}`)
}

// A Redis that does not answer is waited for no longer than -timeout says.
func TestFrozen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	server.Pause()
	defer server.Resume()
	begin := time.Now()
	b.run("keys", "login.user", "-timeout", "300ms").wants(t, 1, "", "ratectl: redis at .* gave no answer within 300ms, see -timeout.*|ratectl: .*timeout.*")
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// The master is found through Sentinels.
func TestSentinel(t *testing.T) {
	if !effort.More() {
		t.Skip("waits for sentinels")
	}
	t.Parallel()
	sentinel := redistest.StartSentinel(t)
	b := newBench(t, sentinel.Nodes[0].Client(t), sentinel.Sentinels[0].Addr)
	b.take(t, 6, "login", 0, "user-1")
	b.run("keys", "login.user").wants(t, 2, "", `.* is a Sentinel: say with -sentinel by which name it knows the master\n`)
	addrs := sentinel.Sentinels[0].Addr + "," + sentinel.Sentinels[1].Addr
	b.run("keys", "login.user", "-sentinel", sentinel.MasterName, "-redis", addrs).wants(t, 0, `KEY.*\nuser-1 +blocked.*`, "")
	// The server that has answered is named, and not the Sentinels.
	master := sentinel.Nodes[0].Addr
	if a := b.run("doctor", "-sentinel", sentinel.MasterName, "-redis", addrs, "-o", "json"); strings.Count(a.out, fmt.Sprintf(`"where":%q`, master)) < 8 || strings.Contains(a.out, sentinel.Sentinels[0].Addr) {
		t.Errorf("no check names %s: %s%s", master, a.out, a.err)
	}
	c := newSession(&program{getenv: func(string) string { return "" }})
	c.redis, c.Timeout, c.dial.MasterName = addrs, time.Minute, sentinel.MasterName
	limittest.OK(t, c.connect(t.Context()))
	defer c.Close()
	sentinel.Nodes[0].Pause()
	defer sentinel.Nodes[0].Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := c.explained(c.Client.Ping(ctx).Err()); err == nil || !strings.Contains(err.Error(), "redis at "+master) {
		t.Errorf("the error of a frozen master does not name %s: %v", master, err)
	}
}

// TLS is spoken with an authority and a certificate of one's own, and a server that
// shows another is refused.
func TestTLS(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.take(t, 6, "login", 0, "user-1")
	certFile, keyFile, believes := redistest.Certificate(t)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	addr := inFront(t, server.Addr, &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: believes.RootCAs})
	b.run("keys", "login.user", "-redis", addr, "-tls-ca", certFile, "-tls-cert", certFile, "-tls-key", keyFile).wants(t, 0, `KEY.*\nuser-1 +blocked.*`, "")
	b.run("keys", "login.user", "-redis", "rediss://"+addr, "-tls-ca", certFile, "-tls-cert", certFile, "-tls-key", keyFile).wants(t, 0, `KEY.*\nuser-1 +blocked.*`, "")
	page := httptest.NewUnstartedServer(ratepage.New())
	page.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	page.StartTLS()
	defer page.Close()
	believed := []string{"-redis", addr, "-tls-ca", certFile, "-tls-cert", certFile, "-tls-key", keyFile}
	b.run(append(believed, "rules", "-rules", page.URL)...).wants(t, 1, "", `ratectl: page https://\S+: the program has no rules: .*`) // it answers
	b.run("top", "-page", page.URL).wants(t, 1, "", `ratectl: .*(certificate|authority).*`)
	b.run("keys", "login.user", "-redis", addr, "-tls", "-timeout", "3s").wants(t, 1, "", `ratectl: .*(certificate|authority).*`)
}

// inFront speaks TLS in front of a server, and returns where.
func inFront(t *testing.T, server string, config *tls.Config) string {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	return relayed(t, listener, server, unchanged, unchanged)
}

// A full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// What cannot be printed is a failure, whatever the command.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"-h", "help", "help keys", "keys -h", "version", "completion bash", "help man", "help markdown"} {
		var errs strings.Builder
		p := &program{in: strings.NewReader(""), out: full{}, err: &errs, getenv: func(string) string { return "" }}
		if code := p.run(t.Context(), strings.Fields(args)); code != failed || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("ratectl %s: exit %d, %q", args, code, errs.String())
		}
	}
}

// A command that was interrupted ends as a shell has it.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.take(t, 1, "login", 0, "user-1")
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, args := range []string{"keys login", "rules", "top -count 2"} {
		var errs strings.Builder
		p := &program{in: strings.NewReader(""), out: io.Discard, err: &errs, getenv: func(name string) string { return b.env[name] }}
		if code := p.run(ctx, strings.Fields(args)); code != interrupted {
			t.Errorf("ratectl %s: exit %d, %q", args, code, errs.String())
		}
	}
}

// Columns stand below each other, however wide the characters of a key are.
func TestWideKeys(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	o := &printer{program: &program{getenv: func(string) string { return "" }, out: &out}}
	if err := o.printTable("KEY USED STATE", [][]string{{"张三", "1", "ok"}, {"user-1", "12", "near"}, {"🍵e\u0301", "3", "ok"}}); err != nil {
		t.Fatal(err)
	}
	want := "KEY     USED  STATE\n张三    1     ok\nuser-1  12    near\n🍵e\u0301     3     ok\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// A table is no wider than the terminal, unless that is asked for, and coloured on one that has colours.
func TestWrappedTables(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"version", "ok", "a text that goes on in further lines", "-"}, {"a-word-of-many-letters", "bad", "short", "a remedy of several words"}}
	for _, test := range []struct {
		columns, noColour string
		wide              bool
		want              string
	}{
		{"40", "1", false, "CHECK         STATE  SAYS          HELP\nversion       ok     a text that   -\n                     goes on in\n                     further\n                     lines\na-word-of-ma  bad    short         a remedy of\nny-letters                         several\n                                   words\n"},
		{"200", "", false, "\x1b[1mCHECK\x1b[0m                   \x1b[1mSTATE\x1b[0m  \x1b[1mSAYS\x1b[0m                                  \x1b[1mHELP\x1b[0m\nversion                 \x1b[32mok\x1b[0m     a text that goes on in further lines  -\na-word-of-many-letters  \x1b[31mbad\x1b[0m    short                                 a remedy of several words\n"},
		{"40", "1", true, "CHECK                   STATE  SAYS                                  HELP\nversion                 ok     a text that goes on in further lines  -\na-word-of-many-letters  bad    short                                 a remedy of several words\n"},
	} {
		var out bytes.Buffer
		p := &printer{program: &program{out: &out, clears: true, getenv: func(name string) string {
			return map[string]string{"COLUMNS": test.columns, "NO_COLOR": test.noColour}[name]
		}}, wide: test.wide}
		if err := p.printTable("CHECK STATE SAYS HELP", rows); err != nil || out.String() != test.want {
			t.Errorf("%v\n%swant\n%s", err, out.String(), test.want)
		}
	}
}
