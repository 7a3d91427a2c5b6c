package picture

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// The measures of the picture in pixels.
const (
	width    = 900
	left     = 190 // of the plots
	right    = 880
	top      = 92
	plot     = 56 // height of a plot
	row      = 98 // from one lane to the next
	perCount = plot / 44.0
)

// The background is the picture's own, so that it can be read on any page.
const style = `
  .card { fill: #ffffff } text { fill: #1f2328; font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
  .name { font-weight: 600; font-size: 14px } .note, .tick { fill: #59636e; font-size: 12px } .title { font-weight: 600; font-size: 15px }
  .grid { stroke: #d1d9e0; stroke-width: 1 } .max { stroke: #59636e; stroke-width: 1; stroke-dasharray: 4 3 }
  .area { fill: #4c8bf5; fill-opacity: .55 } .peer { fill: #8c959f; fill-opacity: .55 } .over { fill: #d1242f; fill-opacity: .85 }
  .passed { stroke: #0b5bd3; stroke-width: 1.4 } .refused { stroke: #bc4c00; stroke-width: 1.4 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #151b23 } text { fill: #f0f6fc } .note, .tick { fill: #a5afba }
    .grid { stroke: #3d444d } .max { stroke: #a5afba }
    .area { fill: #4c8bf5; fill-opacity: .6 } .over { fill: #ff6a69; fill-opacity: .9 }
    .passed { stroke: #79b4ff } .refused { stroke: #f0a35e }
  }`

// draw returns the picture of lanes that have run.
func draw(lanes []*lane) []byte {
	var b bytes.Buffer
	card(&b, top+len(lanes)*row+30, fmt.Sprintf("The same traffic through every algorithm, max=%d window=%v", maximum, window))
	text(&b, 20, 26, "title", fmt.Sprintf("The same calls through every algorithm, max=%d window=%v", maximum, window))
	text(&b, 20, 46, "note", fmt.Sprintf("Areas: how many calls went on in the last %v, at each moment; red: more than max.", window))
	text(&b, 20, 64, "note", "Strokes below: single calls,")
	legend(&b, 190, 64)
	for i, l := range lanes {
		l.draw(&b, top+i*row)
	}
	bottom := float64(top + len(lanes)*row - 2)
	for t := window; t < length; t += window {
		text(&b, x(t), bottom+10, "tick\" text-anchor=\"middle", fmt.Sprintf("%d s", int(t.Seconds())))
	}
	text(&b, left-6, bottom+10, "tick\" text-anchor=\"end", "time")
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// card begins a picture.
func card(b *bytes.Buffer, height int, title string) {
	fmt.Fprintf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n", width, height, width, height)
	fmt.Fprintf(b, "<title>%s</title>\n<style>%s\n</style>\n", title, style)
	fmt.Fprintf(b, "<rect class=\"card\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n", width, height)
}

func legend(b *bytes.Buffer, at, y float64) {
	fmt.Fprintf(b, "<path class=\"passed\" d=\"M%.0f %.0fv-9m4 9v-9m4 9v-9\"/>\n", at, y)
	text(b, at+14, y, "note", "let through")
	fmt.Fprintf(b, "<path class=\"refused\" d=\"M%.0f %.0fv-9m4 9v-9m4 9v-9\"/>\n", at+92, y)
	text(b, at+106, y, "note", "refused")
}

func (l *lane) draw(b *bytes.Buffer, y int) {
	base := float64(y + plot)
	steps, most := l.steps()
	text(b, 20, base-34, "name", l.name)
	text(b, 20, base-17, "note", l.note)
	if l.rule != nil {
		text(b, 20, base, "note", fmt.Sprintf("most in %v: %d", window, most))
		text(b, 20, base+17, "note", fmt.Sprintf("let through: %d of %d", len(l.passed), len(l.passed)+len(l.refused)))
	} else {
		text(b, 20, base, "note", fmt.Sprintf("most in %v: %d", window, most))
	}
	for t := time.Duration(0); t < length; t += window {
		fmt.Fprintf(b, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", x(t), base-plot, base)
	}
	fmt.Fprintf(b, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", left, base, right)
	fmt.Fprintf(b, "<path class=\"area\" d=\"%s\"/>\n", area(steps, base, 0, maximum))
	if most > maximum && l.rule != nil {
		fmt.Fprintf(b, "<path class=\"over\" d=\"%s\"/>\n", area(steps, base, maximum, most))
	} else if most > maximum {
		fmt.Fprintf(b, "<path class=\"area\" d=\"%s\"/>\n", area(steps, base, maximum, most))
	}
	line := base - maximum*perCount
	fmt.Fprintf(b, "<path class=\"max\" d=\"M%d %.1fH%d\"/>\n", left, line, right)
	for _, count := range []int{0, maximum, 2 * maximum} {
		text(b, left-6, base-float64(count)*perCount+4, "tick\" text-anchor=\"end", fmt.Sprint(count))
	}
	strokes(b, "passed", l.passed, base+4)
	strokes(b, "refused", l.refused, base+14)
}

// area returns the outline of the counts between low and high.
func area(steps []step, base float64, low, high int) string {
	var d strings.Builder
	bottom := base - float64(low)*perCount
	fmt.Fprintf(&d, "M%d %.1f", left, bottom)
	for _, s := range steps {
		fmt.Fprintf(&d, "H%.1fV%.1f", x(min(s.at, length)), base-float64(min(max(s.count, low), high))*perCount)
	}
	fmt.Fprintf(&d, "V%.1fZ", bottom)
	return d.String()
}

// strokes draws one stroke a call.
func strokes(b *bytes.Buffer, class string, calls []time.Duration, y float64) {
	if len(calls) == 0 {
		return
	}
	fmt.Fprintf(b, "<path class=\"%s\" d=\"", class)
	for _, at := range calls {
		fmt.Fprintf(b, "M%.1f %.1fv8", x(at), y)
	}
	b.WriteString("\"/>\n")
}

func x(t time.Duration) float64 {
	return left + (right-left)*t.Seconds()/length.Seconds()
}

func text(b *bytes.Buffer, x, y float64, class, s string) {
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">%s</text>\n", x, y, class, s)
}
