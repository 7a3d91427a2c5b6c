package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"

	"github.com/rategen/rategen/bench/internal/contest"
	"github.com/rategen/rategen/bench/internal/limiters"
)

// The measures of the chart in pixels.
const (
	width  = 1060
	left   = 370 // of the bars
	right  = 880 // where the longest bar ends
	bar    = 14
	line   = 21 // from one bar to the next
	header = 62
	above  = 30 // of a panel's bars
	below  = 48
)

// The background is the chart's own, so that it can be read on any page.
const style = `
  .card { fill: #ffffff } text { fill: #1f2328; font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
  .title { font-weight: 600; font-size: 15px } .panel { font-weight: 600; font-size: 14px } .own { font-weight: 600 }
  .note, .tick { fill: #59636e; font-size: 12px } .grid { stroke: #d1d9e0; stroke-width: 1 } .one { stroke: #59636e; stroke-width: 1; stroke-dasharray: 4 3 }
  .rategen { fill: #2f6fde } .peer { fill: #9aa4b0 } .floor { fill: #d1d9e0 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #151b23 } text { fill: #f0f6fc } .note, .tick { fill: #a5afba } .grid { stroke: #3d444d } .one { stroke: #a5afba }
    .rategen { fill: #4c8bf5 } .peer { fill: #6b7683 } .floor { fill: #3d444d }
  }`

// Chart draws how many decisions a second the limiters over Redis made with
// the most callers.
func Chart(result *contest.Result) []byte {
	var (
		panels bytes.Buffer
		y      = header
	)
	for _, c := range []contest.Case{distinct, hot, full} {
		for i := range result.Shared {
			if t := &result.Shared[i]; t.Case == c {
				y = panel(&panels, t, y)
			}
		}
	}
	height := y + 8
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>Decisions per second from one Redis, %d callers</title>\n<style>%s\n</style>\n", distinct.Callers, style)
	fmt.Fprintf(&b, "<rect class=\"card\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n", width, height)
	text(&b, 20, 26, "title", "start", fmt.Sprintf("Decisions per second from one Redis, %d callers", distinct.Callers))
	if len(result.Facts) > 0 {
		text(&b, 20, 46, "note", "start", result.Facts[0])
	}
	b.Write(panels.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// panel draws a case below y and returns where it ends.
func panel(b *bytes.Buffer, t *contest.Table, y int) int {
	var longest, base float64
	for i := range t.Rows {
		longest = max(longest, t.Rows[i].Value(contest.Rate))
	}
	if row := t.Row(limiters.Base); row != nil {
		base = row.Value(contest.Rate)
	}
	bottom := y + above + len(t.Rows)*line
	text(b, 20, y+18, "panel", "start", t.Case.String())
	for _, at := range ticks(longest) {
		x := place(at, longest)
		fmt.Fprintf(b, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", x, y+above-4, bottom)
		text(b, x, bottom+15, "tick", "middle", count(at))
	}
	text(b, left-20, bottom+15, "tick", "end", "decisions per second")
	if base > 0 {
		for _, at := range ticks(longest / base) {
			text(b, place(at*base, longest), bottom+32, "tick", "middle", strconv.FormatFloat(at, 'g', 3, 64)+"×")
		}
		text(b, left-20, bottom+32, "tick", "end", "× "+limiters.Base)
		fmt.Fprintf(b, "<path class=\"one\" d=\"M%.1f %dV%d\"/>\n", place(base, longest), y+above-4, bottom)
	}
	for i := range t.Rows {
		draw(b, &t.Rows[i], y+above+i*line, longest, base)
	}
	return bottom + below
}

// draw draws a limiter's bar below y.
func draw(b *bytes.Buffer, r *contest.Row, y int, longest, base float64) {
	class, label := "peer", ""
	if r.Own {
		class, label = "rategen", "own"
	}
	if r.Floor {
		class = "floor"
	}
	text(b, left-8, y+bar-2, label, "end", r.Name)
	if r.Fault != "" {
		text(b, left+6, y+bar-2, "note", "start", r.Fault)
		return
	}
	rate := r.Value(contest.Rate)
	end := place(rate, longest)
	fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>\n", class, left, y, end-left, bar)
	value := count(rate)
	if ratio := times(rate, base); ratio != "" && r.Name != limiters.Base {
		value += "  " + ratio
	}
	if r.GaveUp > 0 {
		value += fmt.Sprintf("  (%s %% gave up)", significant(100*r.GaveUp))
	}
	text(b, end+6, y+bar-2, label, "start", value)
}

// place returns where a value is on an axis that ends at longest.
func place(value, longest float64) float64 {
	if longest == 0 {
		return left
	}
	return left + (right-left)*value/longest
}

// ticks returns round numbers from 0 to most, about five.
func ticks(most float64) []float64 {
	if most <= 0 {
		return []float64{0}
	}
	step := math.Pow(10, math.Floor(math.Log10(most/4)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if most/(factor*step) <= 6 {
			step *= factor
			break
		}
	}
	var all []float64
	for i := 0.0; i*step <= most; i++ {
		all = append(all, i*step)
	}
	return all
}

// text writes some text. Class may be empty.
func text(b *bytes.Buffer, x float64, y int, class, anchor, s string) {
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\" class=\"%s\" text-anchor=\"%s\" xml:space=\"preserve\">", x, y, class, anchor)
	_ = xml.EscapeText(b, []byte(s)) // a buffer takes everything
	b.WriteString("</text>\n")
}
