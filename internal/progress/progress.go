// Package progress shows on a terminal how far a command is, in one line that is
// drawn anew. Where the output is no terminal it writes nothing, so that a log or a
// pipe gets the result alone.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// width is how much of a line is shown. Terminals are seldom narrower, and a line
// that wraps cannot be drawn anew.
const width = 79

// interval is the least time between two drawings.
const interval = 100 * time.Millisecond

// A Line is one line of progress. A nil Line shows nothing. Its methods may be
// called from any goroutine.
type Line struct {
	out io.Writer
	now func() time.Time

	mu    sync.Mutex
	drawn int // how many characters stand in the line
	at    time.Time
}

// New returns a line on a file, or nil if the file is no terminal.
func New(file *os.File) *Line {
	if os.Getenv("TERM") == "dumb" || !IsTerminal(file) {
		return nil
	}
	return NewLine(file)
}

// NewLine returns a line on what is known to be a terminal.
func NewLine(terminal io.Writer) *Line { return &Line{out: terminal, now: time.Now} }

// Show shows a text in place of the one before. Of texts that follow each other
// within a tenth of a second only the first is shown.
func (l *Line) Show(format string, args ...any) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.drawn > 0 && now.Sub(l.at) < interval {
		return
	}
	l.at = now
	text := []rune(strings.ToValidUTF8(strings.Map(printable, fmt.Sprintf(format, args...)), "?"))
	if len(text) > width {
		text = text[:width]
	}
	l.draw(string(text))
}

// Steps shows how many of total steps are done, and what is under way.
func (l *Line) Steps(done, total int, doing string) {
	l.Show("%d of %d: %s", done, total, doing)
}

// Clear removes the line, before other output. The next Show draws it again.
func (l *Line) Clear() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drawn > 0 {
		l.draw("")
		_, _ = io.WriteString(l.out, "\r")
	}
}

// draw writes a text over what stands in the line.
func (l *Line) draw(text string) {
	n := utf8.RuneCountInString(text)
	_, _ = io.WriteString(l.out, "\r"+text+strings.Repeat(" ", max(0, l.drawn-n)))
	l.drawn = n
}

// printable keeps a name from moving the cursor.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}
