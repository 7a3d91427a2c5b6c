package diag

import (
	"cmp"
	"fmt"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// A Reporter gathers the diagnostics of a run. Its methods may be called from
// any goroutine.
type Reporter struct {
	Fset *token.FileSet
	dir  string

	mu     sync.Mutex
	found  []*Diagnostic
	failed bool
	notes  []string
}

// NewReporter returns a reporter for the files of fset. Paths below dir are
// shown relative to it.
func NewReporter(fset *token.FileSet, dir string) *Reporter {
	return &Reporter{Fset: fset, dir: dir}
}

// A Func takes an error at a place in a source file. The caller may
// complete the diagnostic that it returns.
type Func func(pos token.Pos, format string, args ...any) *Diagnostic

// At reports an error at a place in a source file.
func (r *Reporter) At(pos token.Pos, format string, args ...any) *Diagnostic {
	return r.add(&Diagnostic{Pos: r.Position(pos), Message: fmt.Sprintf(format, args...), pos: pos, end: pos})
}

// Warn reports a warning at a place in a source file.
func (r *Reporter) Warn(code Code, pos token.Pos, format string, args ...any) *Diagnostic {
	return r.add(&Diagnostic{Code: code, Pos: r.Position(pos), Message: fmt.Sprintf(format, args...), pos: pos, end: pos})
}

// AtPosition reports an error at a place that has no token.Pos; the zero
// position is no place.
func (r *Reporter) AtPosition(pos token.Position, format string, args ...any) *Diagnostic {
	return r.add(&Diagnostic{Pos: pos, Message: fmt.Sprintf(format, args...)})
}

func (r *Reporter) add(d *Diagnostic) *Diagnostic {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, d)
	r.failed = r.failed || d.Code == ""
	return d
}

// Note adds a remark that is no error.
func (r *Reporter) Note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, text)
}

// HasErrors reports whether an error was reported.
func (r *Reporter) HasErrors() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// SortedNotes returns the remarks.
func (r *Reporter) SortedNotes() []string {
	slices.Sort(r.notes)
	return r.notes
}

// Diagnostics returns errors and warnings, sorted by file, line and column and
// without repetitions.
func (r *Reporter) Diagnostics() []Diagnostic {
	var ds []Diagnostic
	for _, d := range r.found {
		d.Pos.Filename = r.Short(d.Pos.Filename)
		d.End = d.Pos
		if d.end > d.pos {
			d.End = r.Position(d.end)
		}
		if d.Fix != nil {
			d.Fix.Pos, d.Fix.End = r.Position(d.Fix.pos), r.Position(d.Fix.end)
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

// Position returns a place in a source file as it is shown.
func (r *Reporter) Position(pos token.Pos) token.Position {
	p := r.Fset.PositionFor(pos, false)
	p.Filename = r.Short(p.Filename)
	return p
}

// Short returns a path as it is shown: relative to the reporter's directory if
// it lies below it.
func (r *Reporter) Short(path string) string {
	if rel, err := filepath.Rel(r.dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
