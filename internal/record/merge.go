package record

import (
	"cmp"
	"container/heap"
	"fmt"
	"io"
	"slices"
)

// A cursor is where a recording is read.
type cursor struct {
	*Recording
	files *Files
	next  int // block
	buf   []byte
	d     decoder
	event Event
	tells bool
}

// advance reads the next event, and reports false at the end.
func (c *cursor) advance() (bool, error) {
	for {
		ok, err := c.d.next(&c.event)
		if ok {
			c.event.Time += c.Offset
			return true, nil
		}
		if err != nil {
			if _, too := err.(TooMuch); too {
				return false, err
			}
			c.d.buf = nil
			if c.tells {
				c.files.Damage.Corrupt++ // what stands before it in the block was read
			}
		}
		if c.next == len(c.blocks) {
			return false, nil
		}
		p := c.blocks[c.next]
		c.next++
		c.buf = slices.Grow(c.buf[:0], int(p.length))[:p.length]
		if _, err := c.files.files[p.file].ReadAt(c.buf, p.offset); err != nil && err != io.EOF {
			return false, err
		}
		if _, err := c.d.begin(c.buf); err != nil {
			c.d.buf = nil
			if c.tells {
				c.files.Damage.Corrupt++ // the file was changed meanwhile
			}
		}
	}
}

// cursors are recordings, the earliest event first.
type cursors []*cursor

func (s cursors) Len() int           { return len(s) }
func (s cursors) Less(i, j int) bool { return s[i].event.Time < s[j].event.Time }
func (s cursors) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *cursors) Push(x any)        { *s = append(*s, x.(*cursor)) }
func (s *cursors) Pop() any {
	last := len(*s) - 1
	c := (*s)[last]
	*s = (*s)[:last]
	return c
}

// events calls visit with the events of all recordings in the order of their times, each recording
// in its own order. An event is valid until visit returns. Tells has it count what is wrong with
// them in Damage.
func (f *Files) events(tells bool, visit func(*Recording, *Event) error) error {
	waiting := slices.Clone(f.Recordings)
	slices.SortStableFunc(waiting, func(a, b *Recording) int {
		return cmp.Compare(a.blocks[0].time+a.Offset, b.blocks[0].time+b.Offset)
	})
	var open cursors
	for {
		for len(waiting) > 0 && (len(open) == 0 || waiting[0].blocks[0].time+waiting[0].Offset <= open[0].event.Time) {
			if len(open) == maxAtOnce {
				return TooMuch{fmt.Errorf("more than %d recordings of one moment: name fewer files", maxAtOnce)}
			}
			c := &cursor{Recording: waiting[0], files: f, tells: tells, d: decoder{names: f.Names}}
			waiting = waiting[1:]
			if ok, err := c.advance(); err != nil {
				return err
			} else if ok {
				heap.Push(&open, c)
			}
		}
		if len(open) == 0 {
			return nil
		}
		c := open[0]
		if err := visit(c.Recording, &c.event); err != nil {
			return err
		}
		ok, err := c.advance()
		if err != nil {
			return err
		}
		if ok && len(open) > 1 {
			heap.Fix(&open, 0)
		} else if !ok {
			heap.Pop(&open)
		}
	}
}
