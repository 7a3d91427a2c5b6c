package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/rategen/rategen/internal/progress"
)

// tableWidth is the width of a terminal that every table fits. What is no terminal gets
// tables of any width.
const tableWidth = 80

func widthOf(w io.Writer) int {
	if file, ok := w.(*os.File); ok && progress.IsTerminal(file) {
		return tableWidth
	}
	return math.MaxInt
}

const gap = 2 // blanks between columns

// printTable prints rows of equally many cells in a number of columns. A cell that is too long for
// the table to fit is cut: a name or place at its start, which says less than
// its end, what stands in the columns from the third at its end.
func printTable(w io.Writer, columns int, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], width(cell))
		}
	}
	// The widest column gives way, until all of them fit.
	total := gap * (len(widths) - 1)
	for _, n := range widths {
		total += n
	}
	for ; total > columns; total-- {
		widths[slices.Index(widths, slices.Max(widths))]--
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i < 2 {
				cell = cutStart(cell, widths[i])
			} else {
				cell = cutEnd(cell, widths[i])
			}
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-width(cell)+gap))
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

const ellipsis = "…"

// cutEnd returns s, or as much of its start as fits n columns with an ellipsis.
func cutEnd(s string, n int) string {
	if width(s) <= n {
		return s
	}
	used := 1
	for i, c := range s {
		if used += runeWidth(c); used > n {
			return s[:i] + ellipsis
		}
	}
	return s
}

// cutStart returns s, or an ellipsis and as much of its end as fits.
func cutStart(s string, n int) string {
	over := width(s) - n
	if over <= 0 {
		return s
	}
	over++ // for the ellipsis
	for i, c := range s {
		if over <= 0 {
			return ellipsis + s[i:]
		}
		over -= runeWidth(c)
	}
	return ellipsis
}

func width(s string) int {
	n := 0
	for _, c := range s {
		n += runeWidth(c)
	}
	return n
}

// runeWidth returns how many columns a terminal gives to a character.
func runeWidth(c rune) int {
	switch {
	case unicode.In(c, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.In(c, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana),
		c >= 0x3000 && c <= 0x303f, c >= 0xff01 && c <= 0xff60, c >= 0x1f300 && c <= 0x1faff:
		return 2
	}
	return 1
}
