package generator

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
	"strings"
)

// A Diagnostic is one error in the input.
type Diagnostic struct {
	// Pos is where the error is. Its line is 0 if the error belongs to no
	// place in a file.
	Pos token.Position
	// Message says what is wrong and what to write instead.
	Message string
}

// String returns the diagnostic as file:line:column: message.
func (d Diagnostic) String() string {
	if d.Pos.Filename == "" {
		return d.Message
	}
	return d.Pos.String() + ": " + d.Message
}

// Diagnostics are all errors of a run, sorted by file, line and column. When
// there is one, nothing was written.
type Diagnostics []Diagnostic

// Error returns one line for each diagnostic.
func (ds Diagnostics) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// A reporter gathers the diagnostics of a run.
type reporter struct {
	fset  *token.FileSet
	dir   string // paths below it are shown relative to it
	found Diagnostics
}

// at reports an error at a place in a source file.
func (r *reporter) at(pos token.Pos, format string, args ...any) {
	r.atPosition(r.fset.PositionFor(pos, false), format, args...)
}

// atPosition reports an error at a place that has no token.Pos.
func (r *reporter) atPosition(pos token.Position, format string, args ...any) {
	pos.Filename = shortPath(r.dir, pos.Filename)
	r.found = append(r.found, Diagnostic{Pos: pos, Message: fmt.Sprintf(format, args...)})
}

// err returns the diagnostics, sorted and without repetitions, or nil if
// there are none.
func (r *reporter) err() error {
	if len(r.found) == 0 {
		return nil
	}
	slices.SortStableFunc(r.found, func(a, b Diagnostic) int {
		return cmp.Or(
			strings.Compare(a.Pos.Filename, b.Pos.Filename),
			cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Column, b.Pos.Column),
			strings.Compare(a.Message, b.Message),
		)
	})
	return slices.CompactFunc(r.found, func(a, b Diagnostic) bool {
		a.Pos.Offset, b.Pos.Offset = 0, 0 // the go command gives no offsets
		return a == b
	})
}
