// Package diag gathers the errors and warnings of a run, each with its place in
// the input and, where the remedy is mechanical, a fix.
package diag

import "go/token"

// A Diagnostic is one error in the input, or a warning about it.
type Diagnostic struct {
	Code    Code // of a warning; an error has none
	Pos     token.Position
	End     token.Position // behind the text that it is about, or Pos
	Text    string         // what it is about, or empty
	Message string
	Fix     *Fix // or nil

	// The places in the file set, which are resolved in the end.
	pos, end token.Pos
}

// A Fix replaces a piece of a source file.
type Fix struct {
	Message  string
	Pos, End token.Position
	NewText  string

	pos, end token.Pos
}

// Mark says that the diagnostic is about the text at its position.
func (d *Diagnostic) Mark(text string) *Diagnostic {
	if d.pos.IsValid() {
		d.end, d.Text = d.pos+token.Pos(len(text)), text
	}
	return d
}

// Replace says what to write in place of the n bytes at pos.
func (d *Diagnostic) Replace(pos token.Pos, n int, newText, message string) *Diagnostic {
	if pos.IsValid() {
		d.Fix = &Fix{Message: message, NewText: newText, pos: pos, end: pos + token.Pos(n)}
	}
	return d
}

// ReplaceBy says what to write in place of the text that the diagnostic is
// about. An empty text is no remedy.
func (d *Diagnostic) ReplaceBy(newText string) *Diagnostic {
	if newText == "" {
		return d
	}
	return d.Replace(d.pos, int(d.end-d.pos), newText, "replace it by "+newText)
}
