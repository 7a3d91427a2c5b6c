package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/internal/progress"
)

// tableWidth is the width of a terminal that every table fits. What is no terminal gets
// tables of any width.
const tableWidth = 80

func widthOf(w io.Writer) int {
	if checked, ok := w.(*printed.Writer); ok {
		w = checked.To
	}
	if file, ok := w.(*os.File); ok && progress.IsTerminal(file) {
		return tableWidth
	}
	return math.MaxInt
}

// printTable prints rows of equally many cells in a number of columns. A cell that is too long for
// the table to fit is cut: a name or place at its start, which says less than
// its end, what stands in the columns from the third at its end.
func printTable(w io.Writer, columns int, rows [][]string) {
	widths := printed.Widths(rows)
	printed.Narrow(widths, columns, 0)
	for _, row := range rows {
		row = slices.Clone(row)
		for i, cell := range row {
			if i < 2 {
				row[i] = cutStart(cell, widths[i])
			} else {
				row[i] = cutEnd(cell, widths[i])
			}
		}
		fmt.Fprintln(w, strings.TrimRight(printed.Line(row, widths), " "))
	}
}

const ellipsis = "…"

// cutEnd returns s, or as much of its start as fits n columns with an ellipsis.
func cutEnd(s string, n int) string {
	if printed.Width(s) <= n {
		return s
	}
	return printed.Start(s, n-1) + ellipsis
}

// cutStart returns s, or an ellipsis and as much of its end as fits.
func cutStart(s string, n int) string {
	over := printed.Width(s) - n
	if over <= 0 {
		return s
	}
	over++ // for the ellipsis
	for i, c := range s {
		if over <= 0 {
			return ellipsis + s[i:]
		}
		over -= printed.RuneWidth(c)
	}
	return ellipsis
}
