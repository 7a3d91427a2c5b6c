package generator

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
	"strings"
	"sync"
)

// A Severity says what a diagnostic does to a run.
type Severity string

const (
	Error   Severity = "error"   // nothing is written
	Warning Severity = "warning" // worth a look; the run goes on
)

// A Diagnostic is one error in the input, or a warning about it.
type Diagnostic struct {
	Severity Severity
	// Pos is where it is. Its line is 0 if it belongs to no place in a file.
	Pos token.Position
	// End is behind the text that it is about; it is Pos if that is not known.
	End token.Position
	// Text is that text, or empty if it is not known.
	Text string
	// Message says what is wrong and what to write instead.
	Message string
	// Fix is what to write instead where that is mechanical, or nil.
	Fix *Fix

	pos, end token.Pos
}

// A Fix replaces a piece of a source file.
type Fix struct {
	Message  string // what it does: write option "window"
	Pos, End token.Position
	NewText  string

	pos, end token.Pos
}

// String returns the diagnostic as file:line:column: message.
func (d Diagnostic) String() string {
	text := d.Message
	if d.Severity == Warning {
		text = "warning: " + text
	}
	if d.Pos.Filename != "" {
		text = d.Pos.String() + ": " + text
	}
	return text
}

// over says that the diagnostic is about the text at its position.
func (d *Diagnostic) over(text string) *Diagnostic {
	if d != nil && d.pos.IsValid() {
		d.end, d.Text = d.pos+token.Pos(len(text)), text
	}
	return d
}

// fix says what to write in place of the n bytes at pos.
func (d *Diagnostic) fix(pos token.Pos, n int, newText, message string) *Diagnostic {
	if d != nil && pos.IsValid() {
		d.Fix = &Fix{Message: message, NewText: newText, pos: pos, end: pos + token.Pos(n)}
	}
	return d
}

// replaceBy says what to write in place of the text that the diagnostic is
// about, if anything.
func (d *Diagnostic) replaceBy(newText string) *Diagnostic {
	if d == nil || newText == "" {
		return d
	}
	return d.fix(d.pos, int(d.end-d.pos), newText, "replace it by "+newText)
}

// Diagnostics are all errors and warnings of a run, sorted by file, line and
// column. When there is an error, nothing was written.
type Diagnostics []Diagnostic

// Error returns one line for each diagnostic.
func (ds Diagnostics) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// A reporter gathers the diagnostics of a run, from any goroutine.
type reporter struct {
	fset *token.FileSet
	dir  string // paths below it are shown relative to it

	mu     sync.Mutex
	found  []*Diagnostic
	failed bool // one of found is an error
	notes  []string
}

// note adds a remark that is no error.
func (r *reporter) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, text)
}

// A reportFunc takes an error at a place in a source file. What it returns may
// be completed; it is nil if nobody is interested.
type reportFunc func(pos token.Pos, format string, args ...any) *Diagnostic

// at reports an error at a place in a source file.
func (r *reporter) at(pos token.Pos, format string, args ...any) *Diagnostic {
	return r.add(&Diagnostic{Severity: Error, Pos: r.position(pos), Message: fmt.Sprintf(format, args...), pos: pos, end: pos})
}

// warn reports a warning at a place in a source file.
func (r *reporter) warn(pos token.Pos, format string, args ...any) *Diagnostic {
	return r.add(&Diagnostic{Severity: Warning, Pos: r.position(pos), Message: fmt.Sprintf(format, args...), pos: pos, end: pos})
}

// atPosition reports an error at a place that has no token.Pos.
func (r *reporter) atPosition(pos token.Position, format string, args ...any) *Diagnostic {
	return r.add(&Diagnostic{Severity: Error, Pos: pos, Message: fmt.Sprintf(format, args...)})
}

func (r *reporter) add(d *Diagnostic) *Diagnostic {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, d)
	r.failed = r.failed || d.Severity == Error
	return d
}

// diagnostics returns what was found, sorted and without repetitions.
func (r *reporter) diagnostics() Diagnostics {
	var ds Diagnostics
	for _, d := range r.found {
		d.Pos.Filename = shortPath(r.dir, d.Pos.Filename)
		d.End = d.Pos
		if d.end > d.pos {
			d.End = r.position(d.end)
		}
		if d.Fix != nil {
			d.Fix.Pos, d.Fix.End = r.position(d.Fix.pos), r.position(d.Fix.end)
		}
		ds = append(ds, *d)
	}
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(
			strings.Compare(a.Pos.Filename, b.Pos.Filename),
			cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Column, b.Pos.Column),
			strings.Compare(a.Message, b.Message),
		)
	})
	return slices.CompactFunc(ds, func(a, b Diagnostic) bool {
		a.Pos.Offset, b.Pos.Offset = 0, 0 // the go command gives no offsets
		return a.Pos == b.Pos && a.Message == b.Message
	})
}

func (r *reporter) position(pos token.Pos) token.Position {
	p := r.fset.PositionFor(pos, false)
	p.Filename = shortPath(r.dir, p.Filename)
	return p
}

// shortPosition is a place as file:line.
func shortPosition(pos token.Position) string {
	return fmt.Sprintf("%s:%d", pos.Filename, pos.Line)
}

// err returns the diagnostics if one of them is an error, else nil.
func (r *reporter) err() error {
	if !r.failed {
		return nil
	}
	return r.diagnostics()
}
