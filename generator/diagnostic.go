package generator

import (
	"go/token"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
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
	// Code names the kind of a warning, as the manual of cmd/rategen does. An error has none.
	Code string
	// Fix is what to write instead where that is mechanical, or nil.
	Fix *Fix
}

// A Fix replaces a piece of a source file.
type Fix struct {
	Message  string // what it does: write option "window"
	Pos, End token.Position
	NewText  string
}

// String returns the diagnostic as file:line:column: message, a warning with its code.
func (d Diagnostic) String() string {
	text := d.Message
	if d.Severity == Warning {
		text = "warning: " + text + " [" + d.Code + "]"
	}
	if d.Pos.Filename != "" {
		text = d.Pos.String() + ": " + text
	}
	return text
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

// diagnosticsOf returns what a reporter has gathered.
func diagnosticsOf(report *diag.Reporter) Diagnostics {
	var ds Diagnostics
	for _, f := range report.Diagnostics() {
		d := Diagnostic{Severity: Error, Pos: f.Pos, End: f.End, Text: f.Text, Message: f.Message, Code: string(f.Code)}
		if f.Code != "" {
			d.Severity = Warning
		}
		if f.Fix != nil {
			d.Fix = &Fix{Message: f.Fix.Message, Pos: f.Fix.Pos, End: f.Fix.End, NewText: f.Fix.NewText}
		}
		ds = append(ds, d)
	}
	return ds
}
