package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/printed"
)

// A view is rows of a table below a title and headings.
type view struct {
	title string
	head  []string
	rows  [][]string
}

// A screen shows a table that is made anew again and again, and lets somebody sort and
// filter it, and open one of its rows.
type screen struct {
	out   io.Writer
	size  func() (width, height int)
	wake  chan struct{}
	quits context.CancelFunc

	mu       sync.Mutex
	table    view
	failed   string // why there is no newer table
	sort     int    // column, or -1: as the table comes
	filter   string
	typing   bool // the filter
	opened   string
	selected string // first cell of a row
}

func newScreen(out io.Writer, size func() (int, int), quits context.CancelFunc) *screen {
	return &screen{out: out, size: size, wake: make(chan struct{}, 1), quits: quits, sort: -1}
}

func (s *screen) show(t view, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = visible(err.Error())
	} else {
		s.table, s.failed = t, ""
	}
	s.draw()
}

func (s *screen) rule() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// wakes receives when another table is wanted at once.
func (s *screen) wakes() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.wake
}

func (s *screen) listen(in io.Reader) {
	keys := make([]byte, 64)
	for {
		n, err := in.Read(keys)
		if n > 0 {
			s.press(keys[:n])
		}
		if err != nil {
			return
		}
	}
}

func (s *screen) press(keys []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(keys) > 0 {
		key := string(keys[:1])
		if keys[0] == '\x1b' && len(keys) > 2 { // an arrow, or another key that is several bytes
			key = string(keys[:3])
		}
		keys = keys[len(key):]
		if key == "\x03" || key == "q" && !s.typing {
			s.quits()
			return
		}
		if s.typing {
			s.typed(key)
		} else {
			s.command(key)
		}
	}
	s.draw()
}

// typed takes a key in that is part of the filter.
func (s *screen) typed(key string) {
	switch {
	case key == "\r" || key == "\n":
		s.typing = false
	case key == "\x1b":
		s.typing, s.filter = false, ""
	case key == "\x7f" || key == "\b":
		s.filter = s.filter[:max(0, len(s.filter)-1)]
	case len(key) == 1 && key >= " ":
		s.filter += key
	}
}

func (s *screen) command(key string) {
	rows := s.visible()
	at := max(0, slices.IndexFunc(rows, func(row []string) bool { return row[0] == s.selected }))
	move := func(to int) {
		if len(rows) > 0 {
			s.selected = rows[min(max(to, 0), len(rows)-1)][0]
		}
	}
	switch key {
	case "s":
		if s.sort++; s.sort >= len(s.table.head) {
			s.sort = -1
		}
	case "/":
		s.typing, s.filter = true, ""
	case "\x1b[A", "k":
		move(at - 1)
	case "\x1b[B", "j":
		move(at + 1)
	case "\r", "\n":
		if s.opened == "" && len(rows) > 0 {
			s.turn(rows[at][0])
		}
	case "\x1b", "\x7f", "\x1b[D":
		if s.opened != "" {
			s.turn("")
		}
	}
}

func (s *screen) turn(to string) {
	s.selected = s.opened // where it was
	s.opened, s.filter, s.sort, s.table = to, "", -1, view{title: "a moment"}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// visible returns the rows that fit the filter, in order.
func (s *screen) visible() [][]string {
	rows := slices.DeleteFunc(slices.Clone(s.table.rows), func(row []string) bool {
		return !strings.Contains(strings.ToLower(strings.Join(row, " ")), strings.ToLower(s.filter))
	})
	if s.sort >= 0 && s.sort < len(s.table.head) {
		slices.SortStableFunc(rows, func(a, b []string) int { return compareCells(a[s.sort], b[s.sort]) })
	}
	return rows
}

// compareCells orders cells: numbers and times before text, the greatest first.
func compareCells(a, b string) int {
	x, isX := weight(a)
	y, isY := weight(b)
	if isX && isY {
		return cmp.Or(cmp.Compare(y, x), strings.Compare(a, b))
	}
	return cmp.Or(operate.TrueFirst(isX, isY), strings.Compare(a, b))
}

// weight returns how much a cell says: a number, a share such as 3/5, or a time.
func weight(cell string) (float64, bool) {
	if of, whole, is := strings.Cut(cell, "/"); is {
		x, errX := strconv.ParseFloat(of, 64)
		y, errY := strconv.ParseFloat(whole, 64)
		return x / max(y, 1), errX == nil && errY == nil
	}
	if n, err := strconv.ParseFloat(cell, 64); err == nil {
		return n, true
	}
	d, err := time.ParseDuration(cell)
	return d.Seconds(), err == nil
}

func (s *screen) draw() {
	width, height := s.size()
	head := slices.Clone(s.table.head)
	if s.sort >= 0 && s.sort < len(head) {
		head[s.sort] += "*"
	}
	rows := s.visible()
	at := max(0, slices.IndexFunc(rows, func(row []string) bool { return row[0] == s.selected }))
	room := max(1, height-3)
	first := max(0, at-room+1)
	shown := rows[min(first, len(rows)):min(first+room, len(rows))]
	lines := append([]string{s.table.title}, printed.Lines(fit(append([][]string{head}, shown...), width))...)
	var out strings.Builder
	out.WriteString("\x1b[H")
	for i, line := range lines {
		style := ""
		if i == 2+at-first && len(shown) > 0 {
			style = "\x1b[7m"
		} else if i == 1 {
			style = "\x1b[1m"
		}
		fmt.Fprintf(&out, "%s%s\x1b[0m\x1b[K\r\n", style, printed.Start(line, width))
	}
	fmt.Fprintf(&out, "\x1b[J\x1b[%d;1H%s\x1b[0m\x1b[K", height, printed.Start(s.status(len(rows)), width))
	_, _ = io.WriteString(s.out, out.String())
}

// fit returns rows whose first cells are shortened, as far as the others need room in so many
// columns. What a row is about is still told by twelve.
func fit(rows [][]string, columns int) [][]string {
	if len(rows[0]) == 0 {
		return rows // there is no table yet
	}
	for _, w := range printed.Widths(rows)[1:] {
		columns -= w + printed.Gap
	}
	fits := make([][]string, len(rows))
	for i, row := range rows {
		fits[i] = append([]string{printed.Middle(row[0], max(12, columns))}, row[1:]...)
	}
	return fits
}

// status is the last line: what went wrong, or which keys there are.
func (s *screen) status(rows int) string {
	if s.typing {
		return "filter: " + s.filter + "_"
	}
	if s.failed != "" {
		return "trying again: " + s.failed
	}
	text := "q quit  up/down select  s sort  / filter  enter open"
	if s.opened != "" {
		text = "q quit  esc back  s sort  / filter"
	}
	if s.filter != "" {
		text = fmt.Sprintf("%d with %q  %s", rows, s.filter, text)
	}
	return text
}
