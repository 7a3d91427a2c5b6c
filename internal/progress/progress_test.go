package progress

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
)

// screen returns what a terminal shows in the end.
func screen(written string) string {
	var line []rune
	at := 0
	for _, r := range written {
		if r == '\r' {
			at = 0
		} else if at < len(line) {
			line[at] = r
			at++
		} else {
			line, at = append(line, r), at+1
		}
	}
	return strings.TrimRight(string(line), " ")
}

// TestLine draws texts of all lengths one after the other: a terminal shows the
// newest alone, in one line.
func TestLine(t *testing.T) {
	var out strings.Builder
	now := time.Now()
	l := &Line{out: &out, now: func() time.Time { return now }}
	for n := range 200 {
		text := strings.Repeat("é", (n*67)%200)
		l.Show("%s", text)
		now = now.Add(interval)
		want := []rune(text)
		want = want[:min(len(want), width)]
		if got := screen(out.String()); got != string(want) {
			t.Fatalf("shows %q, want %q", got, string(want))
		}
	}
	l.Clear()
	if screen(out.String()) != "" || !strings.HasSuffix(out.String(), "\r") {
		t.Errorf("after Clear it shows %q", screen(out.String()))
	}
	l.Steps(3, 7, "a\x1b[2J\nb")
	if screen(out.String()) != "3 of 7: a [2J b" {
		t.Errorf("shows %q", screen(out.String()))
	}
	// What comes too soon is left out, except after Clear.
	l.Show("soon")
	if screen(out.String()) == "soon" {
		t.Error("draws twice in a moment")
	}
	l.Clear()
	l.Show("soon")
	if screen(out.String()) != "soon" {
		t.Errorf("after Clear it shows %q", screen(out.String()))
	}
}

// TestNoTerminal wants nothing to be written to a file or a pipe.
func TestNoTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	limittest.OK(t, err)
	defer file.Close()
	read, write, err := os.Pipe()
	limittest.OK(t, err)
	defer read.Close()
	defer write.Close()
	for _, f := range []*os.File{file, write} {
		l := New(f)
		if l != nil {
			t.Errorf("%s is a terminal", f.Name())
		}
		l.Show("nothing")
		l.Steps(1, 2, "nothing")
		l.Clear()
	}
	if info, err := file.Stat(); err != nil || info.Size() > 0 {
		t.Errorf("%d bytes were written, %v", info.Size(), err)
	}
}

// TestTerminal wants a terminal to be one, but for one that cannot go back in a line.
func TestTerminal(t *testing.T) {
	// The side of a terminal that a terminal emulator has needs no permission.
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminal can be made here:", err)
	}
	defer terminal.Close()
	t.Setenv("TERM", "xterm")
	if New(terminal) == nil {
		t.Error("a terminal is none")
	}
	t.Setenv("TERM", "dumb")
	if New(terminal) != nil {
		t.Error("a dumb terminal is drawn on")
	}
}
