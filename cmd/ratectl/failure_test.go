package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime/ratepage"
)

// On a terminal a walk over the database shows how far it is, and leaves nothing.
func TestProgress(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	b := newBench(t, cluster.Client(t), cluster.Nodes[0].Addr)
	b.take(t, 1, "login.user", 0, "user-1")
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
	b.take(t, 6, "login.user", 0, "user-1")
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
	b.take(t, 6, "login.user", 0, "user-1")
	certFile, keyFile, believes := redistest.Certificate(t)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	limittest.OK(t, err)
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
	limittest.OK(t, err)
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
	b.take(t, 1, "login.user", 0, "user-1")
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
	limittest.OK(t, o.printTable("KEY USED STATE", [][]string{{"张三", "1", "ok"}, {"user-1", "12", "near"}, {"🍵e\u0301", "3", "ok"}}))
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
