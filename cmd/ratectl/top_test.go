package main

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

// An interrupt is how top ends, whatever it is at.
func TestTopInterrupted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.take(t, 1, "login.user", 0, "user-1")
	o := b.top(t, &program{out: new(strings.Builder)})
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := o.top(ctx, nil); err != nil {
		t.Errorf("interrupted: %v", err)
	}
}

// top returns the command top with a connection.
func (b *bench) top(t *testing.T, p *program) *session {
	t.Helper()
	p.getenv = func(name string) string { return b.env[name] }
	c := newSession(p)
	c.every, c.count, c.rules = time.Second, 5, b.env["RATECTL_RULES"]
	c.redis, c.Timeout = b.env["RATECTL_REDIS"], time.Minute
	t.Cleanup(c.Close)
	var err error
	if c.Rules, err = c.listed(t.Context()); err == nil {
		err = c.open(t.Context(), true)
	}
	limittest.OK(t, err)
	return c
}

// A page that accepts and says nothing is waited for no longer than -timeout says.
func TestSilentPage(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	limittest.OK(t, err)
	defer listener.Close()
	(&bench{}).run("top", "-page", "http://"+listener.Addr().String(), "-timeout", "200ms").
		wants(t, 1, "", "ratectl: page .* gave no answer within 200ms, see -timeout: .*\n")
}

// An override holds for no less than -for says, also if that is short.
func TestForIsNoLess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	for _, d := range []time.Duration{time.Minute, 90 * time.Second, 61100 * time.Millisecond} {
		begin, err := b.client.Time(context.Background()).Result()
		limittest.OK(t, err)
		a := b.run("block", "login.user", "user-1", "-for", d.String(), "-o", "json")
		var said edited
		if err := json.Unmarshal([]byte(a.out), &said); err != nil || said.After == nil || said.After.Until.IsZero() {
			t.Fatalf("%v: %+v", err, a)
		}
		if end := said.After.Until; end.Before(begin.Add(d)) || !end.Equal(end.Truncate(time.Second)) {
			t.Errorf("-for %v from %v on ends at %v", d, begin, end)
		}
	}
}

// A table that is repeated survives that Redis is away for a moment, and says so.
func TestTopSurvives(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.take(t, 1, "login.user", 0, "user-1")
	limittest.OK(t, b.client.HSet(context.Background(), "orders:limits", "login.user", `{"max": "x"}`).Err())
	b.run("top", "-count", "2", "-every", "100ms").wants(t, 0, "(?s)RULE .*RULE .*", "ratectl: the limiters reject the overrides, .*\n")
	b.client.Del(context.Background(), "orders:limits")
	server.Pause()
	b.run("top", "-count", "2", "-every", "100ms", "-timeout", "200ms").wants(t, 1, "", "ratectl: .*") // the first has to be right
	server.Resume()
	var out, errs limittest.Lines
	p := &program{out: &out, err: &errs, getenv: func(name string) string { return b.env[name] }}
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- p.run(ctx, []string{"top", "-count", "1000000", "-every", "100ms", "-timeout", "300ms"})
	}()
	tables := func() int { return strings.Count(out.String(), "RULE ") }
	limittest.Eventually(t, "there are two tables", func() bool { return tables() > 1 })
	server.Pause()
	limittest.Eventually(t, "it tries again", func() bool { return strings.Contains(errs.String(), "trying again") })
	before := tables()
	server.Resume()
	limittest.Eventually(t, "there is another table", func() bool { return tables() > before })
	interrupt()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
}
