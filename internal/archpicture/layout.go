package main

import (
	"cmp"
	"slices"
)

const (
	columnWidth = 640
	rowHeight   = 72
	boxHeight   = 40
	gap         = 12 // between boxes of a row
	top         = 66 // of the first row
)

// A column is one half of the picture.
type column struct {
	title string
	boxes []*box
	ways  [][]*box // of the arrows: from one box to another, by way of bends
	rows  [][]*box
}

// A box stands for a package or, if it has none, for something beside them. One
// without a name is a bend in an arrow.
type box struct {
	name    string
	pkg     *pkg
	targets []*box // of the arrows that begin here
	above   []*box // where arrows come from, bends among them

	row int
	x   float64 // of the middle
}

// newColumn makes the boxes of packages. A way begins with a source, which uses
// the package named first, and ends at a sink, if that is not "", which the
// package named last uses.
func newColumn(title string, packages []*pkg, source, first, sink, last string) *column {
	c := &column{title: title}
	boxes := map[*pkg]*box{}
	for _, p := range packages {
		boxes[p] = &box{name: p.name(), pkg: p, row: 1}
		c.boxes = append(c.boxes, boxes[p])
	}
	for _, p := range packages {
		for _, q := range p.imports {
			if to := boxes[q]; to != nil {
				boxes[p].targets = append(boxes[p].targets, to)
			}
		}
	}
	start := &box{name: source}
	for _, b := range slices.Clone(c.boxes) {
		if b.pkg.path == first {
			start.targets = []*box{b}
		}
		if b.pkg.path == last && sink != "" {
			end := &box{name: sink}
			b.targets = append(b.targets, end)
			c.boxes = append(c.boxes, end)
		}
	}
	c.boxes = append(c.boxes, start)
	c.layOut()
	return c
}

// layOut gives every box a row, below all whose arrows lead to it, and a place
// there, below them too as far as there is room.
func (c *column) layOut() {
	for changed := true; changed; {
		changed = false
		for _, b := range c.boxes {
			for _, to := range b.targets {
				if to.row <= b.row {
					to.row, changed = b.row+1, true
				}
			}
		}
	}
	for _, b := range c.boxes {
		// A command stands just above what it imports.
		if b.pkg != nil && !slices.ContainsFunc(c.boxes, func(o *box) bool { return o.pkg != nil && slices.Contains(o.targets, b) }) {
			b.row = slices.MinFunc(b.targets, func(x, y *box) int { return x.row - y.row }).row - 1
		}
	}
	for _, b := range c.boxes {
		c.enter(b)
	}
	for _, b := range c.boxes {
		for _, to := range b.targets {
			way := []*box{b}
			for row := b.row + 1; row < to.row; row++ {
				bend := &box{row: row, above: []*box{way[len(way)-1]}}
				way = append(way, bend)
				c.enter(bend)
			}
			to.above = append(to.above, way[len(way)-1])
			c.ways = append(c.ways, append(way, to))
		}
	}
	for _, row := range c.rows {
		place(row)
	}
}

func (c *column) enter(b *box) {
	for len(c.rows) <= b.row {
		c.rows = append(c.rows, nil)
	}
	c.rows[b.row] = append(c.rows[b.row], b)
}

// place places the boxes of a row. What nothing leads to is spread over it.
func place(row []*box) {
	free, at := 0, 0
	for _, b := range row {
		if len(b.above) == 0 {
			free++
		}
	}
	for _, b := range row {
		if len(b.above) == 0 {
			at++
			b.x = columnWidth * float64(at) / float64(free+1)
		}
		for _, from := range b.above {
			b.x += from.x / float64(len(b.above))
		}
	}
	slices.SortStableFunc(row, func(a, b *box) int { return cmp.Compare(a.x, b.x) })
	for range 500 { // push apart what overlaps
		for i := 1; i < len(row); i++ {
			if over := row[i-1].right() + gap - row[i].left(); over > 0 {
				row[i-1].x -= over / 2
				row[i].x += over / 2
			}
		}
		first, last := row[0], row[len(row)-1]
		first.x = max(first.x, gap+first.width()/2)
		last.x = min(last.x, columnWidth-gap-last.width()/2)
	}
}

func (b *box) width() float64 {
	if b.name == "" {
		return 4
	}
	return 20 + 7.3*float64(len(b.name))
}

func (b *box) left() float64  { return b.x - b.width()/2 }
func (b *box) right() float64 { return b.x + b.width()/2 }
func (b *box) y() int         { return top + b.row*rowHeight }
