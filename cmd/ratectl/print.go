package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"strconv"
	"strings"
	"unicode"

	"github.com/rategen/rategen/internal/printed"
)

type printer struct {
	*program
	format string // table or json
	wide   bool   // tables are as wide as they are
}

func (p *printer) printJSON(v any) error { return encoderTo(p.out).Encode(v) }

func encoderTo(out io.Writer) *json.Encoder {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder
}

func (p *printer) json() bool { return p.format == "json" }

func (p *printer) printTable(head string, rows [][]string) error {
	rows = cells(rows, func(row []string) []string { return row })
	if head != "" {
		rows = append([][]string{strings.Split(head, " ")}, rows...)
	}
	for _, line := range printed.Wrapped(rows, p.columns(), p.painter(head != "")) {
		if _, err := fmt.Fprintln(p.out, line); err != nil {
			return err
		}
	}
	return nil
}

// columns returns how wide tables may be; 0: as wide as they are.
func (p *printer) columns() int {
	n, err := strconv.Atoi(p.getenv("COLUMNS"))
	if p.wide {
		return 0
	}
	if err == nil && n > 0 {
		return n
	}
	if p.terminal != nil {
		n, _ = p.terminal.size()
		return n
	}
	return 0
}

// colours are those of words in tables on a terminal: red, yellow and green.
var colours = map[string]string{"bad": "31", "refused": "31", "blocked": "31", "held": "31", "broken": "31", "warn": "33", "near": "33", "unknown": "33", "ok": "32"}

// painter returns how the texts of a table are printed, of which the first row may be headings.
func (p *printer) painter(headed bool) func(row int, text string) string {
	plain := !p.clears || p.getenv("NO_COLOR") != ""
	return func(row int, text string) string {
		style := colours[text]
		if row == 0 && headed {
			style = "1"
		}
		if plain || style == "" {
			return text
		}
		return "\x1b[" + style + "m" + text + "\x1b[0m"
	}
}

// cells returns values as rows of a table. Nobody's key moves the cursor.
func cells[T any](values []T, row func(T) []string) [][]string {
	rows := make([][]string, len(values))
	for i, v := range values {
		for _, cell := range row(v) {
			rows[i] = append(rows[i], printed.Text(cell))
		}
	}
	return rows
}

func rowOf(values ...any) []string {
	row := make([]string, len(values))
	for i, v := range values {
		row[i] = fmt.Sprint(v)
	}
	return row
}

// visible returns text without what would move the cursor.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, strings.TrimSpace(text))
}

// printf prints a line for a reader; in JSON there is none. Nobody's name of a rule
// moves the cursor.
func (p *printer) printf(format string, args ...any) {
	if !p.json() {
		fmt.Fprintln(p.out, visible(fmt.Sprintf(format, args...)))
	}
}

func printEach[T any](p *printer, head string, values []T, row func(T) []string) error {
	if p.json() {
		for _, v := range values {
			if err := p.printJSON(v); err != nil {
				return err
			}
		}
		return nil
	}
	rows := make([][]string, len(values))
	for i, v := range values {
		rows[i] = row(v)
	}
	return p.printTable(head, rows)
}

// A program is what the command is given by the system.
type program struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	asks     bool     // somebody can be asked
	shows    bool     // somebody sees progress
	clears   bool     // standard output is a screen
	terminal terminal // with a keyboard; nil: there is none
	began    bool     // the command line is understood
}

func (p *program) logger() *log.Logger { return log.New(p.err, "ratectl: ", 0) }

type terminal interface {
	// raw has keys come one by one, and not shown, until restore is called.
	raw() (restore func(), err error)
	// size returns how many columns and lines the screen has.
	size() (width, height int)
}
