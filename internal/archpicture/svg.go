package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

const style = `
  .card { fill: #ffffff } .half { fill: #f6f8fa }
  text { fill: #1f2328; font: 12px "DejaVu Sans Mono", ui-monospace, monospace; text-anchor: middle }
  .title { font: 600 16px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
  .note { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #59636e }
  .box { fill: #ffffff; stroke: #8c959f } .way { fill: #ddf4ff; stroke: #0969da }
  .file { fill: #fff8c5; stroke: #9a6700 }
  .step { font: 11px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #0969da }
  .import { fill: none; stroke: #8c959f } .flow { fill: none; stroke: #9a6700; stroke-width: 1.5; stroke-dasharray: 5 3 }
  #import path { fill: #8c959f } #flow path { fill: #9a6700 }`

const margin = 20

// writeSVG writes the picture.
func writeSVG(b *bytes.Buffer, columns []*column) {
	rows := 0
	for _, c := range columns {
		rows = max(rows, len(c.rows))
	}
	bottom := top + rows*rowHeight
	width, height := columnWidth*len(columns)+margin*(len(columns)+1), bottom+44
	fmt.Fprintf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n", width, height, width, height)
	fmt.Fprintf(b, "<title>The packages of rategen, and the ways of a directive and of a call</title>\n<style>%s\n</style>\n", style)
	for _, id := range []string{"import", "flow"} {
		fmt.Fprintf(b, "<marker id=\"%s\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker>\n", id)
	}
	fmt.Fprintf(b, "<rect class=\"card\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n", width, height)
	for i, c := range columns {
		left := float64(margin + i*(columnWidth+margin))
		fmt.Fprintf(b, "<rect class=\"half\" x=\"%.0f\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", left, margin, columnWidth, bottom-margin)
		c.write(b, left)
		if i > 0 { // what one way ends with is what the next one begins with
			from := columns[i-1].rows[0][0]
			to := c.rows[0][0]
			x1, x2, y := left-columnWidth-margin+from.right(), left+to.left(), top+boxHeight/2
			fmt.Fprintf(b, "<path class=\"flow\" marker-end=\"url(#flow)\" d=\"M%.1f %dH%.1f\"/>\n", x1, y, x2)
			text(b, (x1+x2)/2, y-6, "note", "go generate")
		}
	}
	text(b, float64(width)/2, height-16, "note",
		"A solid arrow is an import; those that other arrows imply are left out. The numbers are those of the files in ARCHITECTURE.md.")
	b.WriteString("</svg>\n")
}

func (c *column) write(b *bytes.Buffer, left float64) {
	text(b, left+columnWidth/2, 48, "title", c.title)
	for _, way := range c.ways {
		class := "import"
		if way[0].pkg == nil || way[len(way)-1].pkg == nil {
			class = "flow"
		}
		fmt.Fprintf(b, "<path class=\"%s\" marker-end=\"url(#%s)\" d=\"M%.1f %d", class, class, left+way[0].x, way[0].y()+boxHeight)
		for i, to := range way[1:] {
			from := way[i]
			y1, y2 := from.y()+boxHeight, to.y()
			bend := (y2 - y1) / 2
			fmt.Fprintf(b, "C%.1f %d %.1f %d %.1f %d", left+from.x, y1+bend, left+to.x, y2-bend, left+to.x, y2)
			if to.name == "" {
				fmt.Fprintf(b, "V%d", y2+boxHeight)
			}
		}
		b.WriteString("\"/>\n")
	}
	for _, box := range c.boxes {
		box.write(b, left+box.x)
	}
}

// write writes the box and its steps.
func (b *box) write(out *bytes.Buffer, x float64) {
	class, steps := "file", ""
	if b.pkg != nil {
		class, steps = "box", strings.Join(b.pkg.steps, " ")
	}
	if steps != "" {
		class = "way"
	}
	fmt.Fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"5\"/>\n", class, x-b.width()/2, b.y(), b.width(), boxHeight)
	at := b.y() + 25
	if steps != "" {
		at = b.y() + 17
		text(out, x, b.y()+33, "step", steps)
	}
	text(out, x, at, "", b.name)
}

func text(b *bytes.Buffer, x float64, y int, class, s string) {
	if class != "" {
		class = " class=\"" + class + "\""
	}
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\"%s>", x, y, class)
	_ = xml.EscapeText(b, []byte(s))
	b.WriteString("</text>\n")
}
