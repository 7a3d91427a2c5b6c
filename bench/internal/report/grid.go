// Package report writes what a contest has found: as text and in Markdown.
package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A Style is a way to write tables.
type Style uint8

const (
	Text Style = iota
	Markdown
)

// A grid is a table of texts. Its first column is flush left, the others are
// flush right.
type grid struct {
	title string
	head  []string
	rows  [][]string // may be shorter than head
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

func (g *grid) write(w io.Writer, style Style) {
	lines := append([][]string{g.head}, g.rows...)
	widths := make([]int, len(g.head))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	if style == Markdown {
		if g.title != "" {
			fmt.Fprintf(w, "**%s**\n\n", g.title)
		}
		for i, line := range lines {
			fmt.Fprintf(w, "| %s |\n", strings.Join(line, " | ")+strings.Repeat(" |", len(g.head)-len(line)))
			if i == 0 {
				fmt.Fprintf(w, "|---|%s\n", strings.Repeat("---:|", len(g.head)-1))
			}
		}
		fmt.Fprintln(w)
		return
	}
	if g.title != "" {
		fmt.Fprintln(w, g.title)
	}
	for _, line := range lines {
		var b strings.Builder
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString("  " + cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	fmt.Fprintln(w)
}
