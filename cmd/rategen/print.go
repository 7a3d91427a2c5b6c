package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/rategen/rategen/generator"
)

// A printer says what a run found: to people on standard error, one line each,
// or to editors on standard output as JSON, one object a line.
type printer struct {
	stdout, stderr io.Writer
	json           bool
}

// A diagnostic is the JSON form of what a run found. Lines and columns start
// at 1, columns count bytes, and what is not known is left out.
type diagnostic struct {
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	EndLine   int    `json:"endLine,omitempty"`
	EndColumn int    `json:"endColumn,omitempty"`
	Severity  string `json:"severity"` // error, warning or note
	Message   string `json:"message"`
	Code      string `json:"code,omitempty"` // of a warning
	Text      string `json:"text,omitempty"` // what the message is about
	Fix       *fix   `json:"fix,omitempty"`
}

// A fix replaces what stands from a place up to another one.
type fix struct {
	Message   string `json:"message"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"endLine"`
	EndColumn int    `json:"endColumn"`
	NewText   string `json:"newText"`
}

// err prints the error of a run.
func (p *printer) err(err error) {
	if ds := (generator.Diagnostics)(nil); errors.As(err, &ds) {
		p.diagnostics(ds)
		return
	}
	p.print(diagnostic{Severity: "error", Message: err.Error()}, err.Error())
}

func (p *printer) diagnostics(ds generator.Diagnostics) {
	for _, d := range ds {
		out := diagnostic{
			File: d.Pos.Filename, Line: d.Pos.Line, Column: d.Pos.Column,
			Severity: string(d.Severity), Message: d.Message, Code: d.Code, Text: d.Text,
		}
		if d.Text != "" {
			out.EndLine, out.EndColumn = d.End.Line, d.End.Column
		}
		if f := d.Fix; f != nil {
			out.Fix = &fix{f.Message, f.Pos.Line, f.Pos.Column, f.End.Line, f.End.Column, f.NewText}
		}
		p.print(out, d.String())
	}
}

// note prints a remark.
func (p *printer) note(text string) {
	p.print(diagnostic{Severity: "note", Message: text}, text)
}

// stale prints that a file is not up to date.
func (p *printer) stale(f generator.File) {
	text := fmt.Sprintf("%s: run go generate", f.Status)
	p.print(diagnostic{File: f.Path, Severity: "error", Message: text}, f.Path+": "+text)
}

func (p *printer) print(d diagnostic, text string) {
	if !p.json {
		fmt.Fprintln(p.stderr, text)
		return
	}
	enc := json.NewEncoder(p.stdout)
	enc.SetEscapeHTML(false)
	enc.Encode(d)
}
