package main

import (
	"context"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

// A typist is a terminal whose keys a test presses, and whose screen it reads.
type typist struct {
	mu       sync.Mutex
	last     string // what was drawn last
	size_    [2]int
	restored bool
}

func (y *typist) raw() (func(), error) { return func() { y.restored = true }, nil }

func (y *typist) size() (int, int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.size_[0], y.size_[1]
}

func (y *typist) Write(p []byte) (int, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.last = string(p)
	return len(p), nil
}

// escapes are what moves the cursor, but for the mark of the selected line.
var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b\[[01]?m|\r`)

func (y *typist) screen() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return escapes.ReplaceAllString(y.last, "")
}

// shows waits until the screen is as a pattern says.
func (y *typist) shows(t *testing.T, after, pattern string) {
	t.Helper()
	want := regexp.MustCompile(`(?s)^` + strings.ReplaceAll(pattern, ">", `\x1b\[7m`) + `$`)
	for begin := time.Now(); !want.MatchString(y.screen()); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("after %q the screen is\n%q\nwant\n%q", after, y.screen(), pattern)
		}
	}
}

// TestScreen sorts, filters and opens what top shows, while Redis goes and comes.
func TestScreen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.take(t, 6, "login.user", 0, "user-1")
	b.take(t, 1, "login.user", 0, "user-2")
	for _, user := range []string{"a", "b", "c"} {
		b.take(t, 15, "model.tokens", 0, "acme", user) // which is not near the limit, and lasts
	}
	keys, press := io.Pipe()
	y := &typist{size_: [2]int{90, 12}}
	var errs strings.Builder
	p := &program{in: keys, out: y, err: &errs, getenv: func(name string) string { return b.env[name] }, clears: true, terminal: y}
	ended := make(chan int, 1)
	go func() { ended <- p.run(context.Background(), []string{"top", "-every", "100ms"}) }()
	const all = `.*\nRULE +BLOCKED +REFUSED +NEAR +UNKNOWN +KEYS +WORST\n`
	y.shows(t, "", all+`>login.user +1 +0 +0 +0 +2 +user-1\njobs .*q quit.*`)
	for _, step := range []struct{ keys, screen string }{
		{"ssssss", `.*\nRULE .*KEYS\* +WORST\n>model.tokens .*login.user .*`}, // by how many keys there are
		{"sss", `.*\nRULE\* .*\n>jobs .*`},                                    // by name, after the order of top
		{"/tok", `.*\nRULE\* [^\n]*\n>model.tokens [^\n]*\nfilter: tok_`},
		{"x\x7f\r", `.*\n>model.tokens [^\n]*\n1 with "tok"  q quit.*`},
		{"\r", `3 of 3 keys of model.tokens.*\nKEY +STATE +USED +RETRY +RESET\n>acme:a .*acme:c [^\n]*\nq quit  esc back.*`},
		{"\x1b[B", `.*acme:a [^\n]*\n>acme:b .*`},
		{"jj", `.*acme:b [^\n]*\n>acme:c .*`}, // there is none below
		{"k\x1b[A\x1b[A", `.*\n>acme:a .*`},
		{"\x1b", all + `login.user .*>model.tokens .*`}, // which was left
		{"/twin2\r", `.*\n>rate_limit:twin2: .*`},       // another rule has its name
		{"\r", `0 of 0 keys of rate_limit:twin2:.*`},
		{"\x1b", all + `login.user .*>rate_limit:twin2: .*`},
	} {
		if _, err := io.WriteString(press, step.keys); err != nil {
			t.Fatal(err)
		}
		y.shows(t, step.keys, step.screen)
	}
	server.Kill() // what it then refuses takes no time, however long answers may take
	y.shows(t, "an end of Redis", `.*login.user .*\ntrying again: redis at .*`)
	server.Restart()
	y.shows(t, "its return", `.*login.user .*q quit.*`)
	limittest.OK(t, b.client.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
	y.shows(t, "a refusal of writes", `.*login.user .*\ntrying again: redis refuses this: .*`)
	limittest.OK(t, b.client.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
	y.mu.Lock()
	y.size_ = [2]int{20, 4}
	y.mu.Unlock()
	y.shows(t, "a small window", `[^\n]{1,20}\n[^\n]{1,20}\n>[^\n]{1,20}\n[^\n]{1,20}`)
	if _, err := io.WriteString(press, "q"); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != 0 || errs.Len() != 0 || !y.restored {
		t.Errorf("exit code %d, %q, restored %t", code, errs.String(), y.restored)
	}
	_ = press.Close()
}

// Cells are ordered as what they say.
func TestCompareCells(t *testing.T) {
	t.Parallel()
	order := []string{"5/5", "0.5", "1/5", "0", "-"}
	for _, list := range [][]string{order, {"1h2m", "35.6s", "900ms", "never"}, {"12", "9", "a", "b"}} {
		for i := range list[1:] {
			if compareCells(list[i], list[i+1]) >= 0 || compareCells(list[i+1], list[i]) <= 0 || compareCells(list[i], list[i]) != 0 {
				t.Errorf("%q is not before %q", list[i], list[i+1])
			}
		}
	}
}

// TestLongNames wants the numbers beside long names of rules to be seen, and names to be told apart.
func TestLongNames(t *testing.T) {
	t.Parallel()
	long := "github.com.example.gateway.requests.of.everybody.beyond.all.bounds.Orders."
	y := &typist{size_: [2]int{60, 10}}
	s := newScreen(y, y.size, func() {})
	s.show(view{"title", []string{"RULE", "BLOCKED", "WORST"}, [][]string{{long + "Place", "17", "ada"}, {long + "Cancel", "4", "bob"}, {"短い名前", "3", "-"}}}, nil)
	lines := strings.Split(y.screen(), "\n")
	for i, want := range []string{"title", `RULE +BLOCKED +WORST`, `github.*….*s.Place +17 +ada`, `github.*….*.Cancel +4 +bob`, `短い名前 +3 +-`} {
		if line := strings.TrimPrefix(lines[i], "\x1b[7m"); !regexp.MustCompile("^"+want+"$").MatchString(line) || printed.Width(line) > 60 {
			t.Errorf("%q, want %q in 60 columns", line, want)
		}
	}
	for columns := range 40 {
		for _, name := range []string{long, "短い名前は短くない", "", "a", "e\u0301e\u0301e\u0301e\u0301"} {
			if got := printed.Middle(name, columns); printed.Width(got) > columns {
				t.Errorf("%q in %d columns is %q", name, columns, got)
			}
		}
	}
}
