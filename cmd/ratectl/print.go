package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/rategen/rategen/internal/printed"
)

// printJSON prints a value on a line of its own.
func (o *operator) printJSON(v any) error {
	encoder := json.NewEncoder(o.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

func (o *operator) json() bool { return o.format == "json" }

// printTable prints rows, below their headings if there are some. Nobody's key moves the cursor.
func (o *operator) printTable(head string, rows [][]string) error {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable(cell)
		}
	}
	if head != "" {
		rows = append([][]string{strings.Split(head, " ")}, rows...)
	}
	for _, line := range printed.Lines(rows) {
		if _, err := fmt.Fprintln(o.out, line); err != nil {
			return err
		}
	}
	return nil
}

// printable returns text with what is not to be seen as Go writes it.
func printable(text string) string {
	if text == "" {
		return `""`
	}
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
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
func (o *operator) printf(format string, args ...any) {
	if !o.json() {
		fmt.Fprintln(o.out, visible(fmt.Sprintf(format, args...)))
	}
}

// printEach prints values as lines of JSON, or as a table.
func printEach[T any](o *operator, head string, values []T, row func(T) []string) error {
	if o.json() {
		for _, v := range values {
			if err := o.printJSON(v); err != nil {
				return err
			}
		}
		return nil
	}
	rows := make([][]string, len(values))
	for i, v := range values {
		rows[i] = row(v)
	}
	return o.printTable(head, rows)
}
