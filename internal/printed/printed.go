// Package printed is what the commands print with: text in columns, and whether all of it has
// arrived.
package printed

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// A Writer keeps the first error of another one. It is safe for concurrent use.
type Writer struct {
	To io.Writer

	mu  sync.Mutex
	err error
}

func (w *Writer) Write(p []byte) (int, error) {
	n, err := w.To.Write(p)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err == nil {
			w.err = err
		}
	}
	return n, err
}

// Err returns the first error of a write, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Text returns a text with what is not to be seen as Go writes it: nobody's key moves the cursor.
func Text(text string) string {
	if text == "" {
		return `""`
	}
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Gap is how many blanks are between columns.
const Gap = 2

// Widths returns how wide the widest cell of each column is.
func Widths(rows [][]string) (widths []int) {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	return widths
}

// Line returns a row with its cells in columns of such widths. The last cell is not padded.
func Line(row []string, widths []int) string {
	var line strings.Builder
	for i, cell := range row {
		line.WriteString(cell)
		if i < len(row)-1 {
			line.WriteString(strings.Repeat(" ", widths[i]-Width(cell)+Gap))
		}
	}
	return line.String()
}

// Lines returns rows as lines of columns, each as wide as its widest cell.
func Lines(rows [][]string) []string {
	widths, lines := Widths(rows), make([]string, len(rows))
	for i, row := range rows {
		lines[i] = Line(row, widths)
	}
	return lines
}

// Narrow makes columns narrower until a row of them fits so many, the widest first, and none narrower than least.
func Narrow(widths []int, columns, least int) {
	total := Gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > columns && slices.Max(widths) > least; total-- {
		widths[slices.Index(widths, slices.Max(widths))]--
	}
}

// Filled breaks a text into lines of at most so many columns, of which the first begins otherwise than the others. A
// word that is longer is not cut.
func Filled(text, first, others string, columns int) string {
	var lines []string
	line := first
	for i, word := range strings.Fields(text) {
		if i > 0 && Width(line+word) > columns {
			lines = append(lines, strings.TrimRight(line, " "))
			line = others
		}
		line += word + " "
	}
	return strings.Join(append(lines, strings.TrimRight(line, " ")), "\n")
}

// leastWidth is how narrow a column becomes at most where a table is too wide.
const leastWidth = 12

// Wrapped returns rows as lines of columns that are no wider than so many, if that can be; 0: as wide as they
// are. Cells that are too wide go on in further lines. Paint returns a text of a row as it is printed; it
// takes as many columns as before.
func Wrapped(rows [][]string, columns int, paint func(row int, text string) string) (lines []string) {
	widths := Widths(rows)
	if columns > 0 {
		Narrow(widths, columns, leastWidth)
	}
	for n, row := range rows {
		for rest := slices.Clone(row); rest != nil; {
			line, more, blanks := "", false, 0
			for i := range rest {
				var cell string
				cell, rest[i] = cut(rest[i], widths[i])
				more = more || rest[i] != ""
				if cell != "" {
					line += strings.Repeat(" ", blanks) + paint(n, cell)
					blanks = 0
				}
				blanks += widths[i] - Width(cell) + Gap
			}
			lines = append(lines, line)
			if !more {
				rest = nil
			}
		}
	}
	return lines
}

// cut returns as much of a text as fits a number of columns, if it can up to a blank, and what is left.
func cut(text string, columns int) (first, rest string) {
	first = Start(text, columns)
	if first == text {
		return text, ""
	}
	if at := strings.LastIndexByte(first, ' '); at > 0 {
		return text[:at], text[at+1:]
	}
	return first, text[len(first):]
}

// Start returns as much of the start of a text as fits a number of columns.
func Start(s string, columns int) string {
	for i, c := range s {
		if columns -= RuneWidth(c); columns < 0 {
			return s[:i]
		}
	}
	return s
}

// Middle returns a text without its middle, if it does not fit a number of columns.
func Middle(s string, columns int) string {
	if Width(s) <= columns {
		return s
	}
	start := Start(s, columns/2)
	for i := range s {
		if i > len(start) && Width(s[i:]) < columns-Width(start) {
			return start + "…" + s[i:]
		}
	}
	return start
}

// Width returns how many columns a terminal gives to a text.
func Width(s string) int {
	n := 0
	for _, c := range s {
		n += RuneWidth(c)
	}
	return n
}

// RuneWidth returns how many columns a terminal gives to a character.
func RuneWidth(c rune) int {
	if unicode.In(c, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	if unicode.In(c, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) || c >= 0x3000 && c <= 0x303f || c >= 0xff01 && c <= 0xff60 || c >= 0x1f300 && c <= 0x1faff {
		return 2
	}
	return 1
}
