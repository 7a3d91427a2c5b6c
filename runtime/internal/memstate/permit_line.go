package memstate

import (
	"slices"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// The processes that wait for permits stand ahead of these in the list, so that they count as
// lapsed. Each has two pairs: minus when it last asked, and its number; minus since when it
// waits, and what its first call asks for. See concurrency.lua.
const (
	placeAsked = iota
	placeProcess
	placeBegan
	placeCost
	placeSize
)

const (
	maxPlaces     = 64
	placeGrace    = 200_000
	placeRefresh  = 50_000
	placePause    = 2_000
	placeQuantum  = 10_000
	placeNextMost = 50_000
	placeMost     = 100_000 // where only calls of the process have what it waits for
)

// line returns how many values of the list are places of processes.
func (p *permits) line() (values int) {
	for values < len(p.list) && p.list[values] < 0 {
		values += placeSize
	}
	return values
}

// stands reports whether the process of a place has asked lately.
func stands(place []int64, clock int64) bool {
	passed := clock + place[placeAsked]
	return max(passed, -passed) <= placeGrace
}

// place returns where the place of a charge's process is in the list, or -1.
func (p *permits) place(c *terms.Charge) int {
	process := max(c.Param, -c.Param)
	for i := p.line() - placeSize; i >= 0; i -= placeSize {
		if p.list[i+placeProcess] == process {
			return i
		}
	}
	return -1
}

// queue finds what the line leaves of the room for a charge, and how much those ahead ask for.
func (p *permits) queue(clock int64, c *terms.Charge, v *view) {
	values, mine := p.line(), p.place(c)
	for i := 0; i < values; i += placeSize {
		if i != mine && stands(p.list[i:], clock) {
			v.others++
		}
	}
	part, held, heavy := c.Max/(v.others+1), c.More, int64(0)
	if held < 0 && part > 0 {
		held += c.Max
	}
	for i := 0; i < values; i += placeSize {
		if o := p.list[i:]; i != mine && stands(o, clock) && (mine < 0 || isBefore(o, p.list[mine:])) {
			v.before += o[placeCost]
			if o[placeCost] > max(1, part) {
				heavy += o[placeCost]
			}
		}
	}
	v.room = min(v.room, max(v.room-v.before, min(v.room-heavy, part-held)))
	if c.Cost > v.room && v.retry == 0 {
		v.retry = max(1000, int64(float64(p.bound)*float64(v.before+c.Cost)/float64(c.Max)))
	}
}

// isBefore reports whether a place is ahead of another one.
func isBefore(a, b []int64) bool {
	if a[placeBegan] != b[placeBegan] {
		return a[placeBegan] > b[placeBegan]
	}
	return a[placeProcess] < b[placeProcess]
}

// advance drops the place of a process that was admitted at its turn, or of which no other call waits, and
// gives it another one if more of its calls wait, as others do.
func (p *permits) advance(clock int64, c *terms.Charge, v *view) {
	mine := p.place(c)
	if mine >= 0 && (c.Param > 0 || c.Cost <= c.Max-(v.end-v.count)-v.before) {
		p.list = slices.Delete(p.list, mine, mine+placeSize)
		mine = -1
	}
	p.stand(clock, c, mine, c.Param < 0 && v.others > 0)
}

// stand drops the places of processes that ask no more. If the charge's is to stand it gets a place,
// keeps the one that it has, or has asked.
func (p *permits) stand(clock int64, c *terms.Charge, mine int, stay bool) {
	values, now := p.line(), -(clock - clock%32)
	kept := make([]int64, 0, len(p.list)+placeSize)
	for i := 0; i < values; i += placeSize {
		if o := p.list[i : i+placeSize]; i == mine || stands(o, clock) {
			kept = append(kept, o...)
			own := kept[len(kept)-placeSize:]
			if i == mine && stay {
				if passed := clock + own[placeAsked]; max(passed, -passed) >= placeRefresh || own[placeCost] != c.Cost {
					own[placeAsked], own[placeCost] = now, c.Cost
				}
			}
		}
	}
	if mine < 0 && stay && len(kept) < maxPlaces*placeSize {
		kept = append(kept, now, max(c.Param, -c.Param), -clock, c.Cost)
	}
	p.list = append(kept, p.list[values:]...)
}

// wait has the process of a refused charge stand in line, and says when it is to ask again.
func (p *permits) wait(clock int64, c *terms.Charge, v *view) {
	p.stand(clock, c, p.place(c), true)
	live := v.end - v.count
	v.delay = placeMost
	if c.Cost > c.Max-live && live <= c.More {
		return // what comes back is its own
	}
	next := float64(max(p.bound, placeQuantum)) / float64(c.Max) / 2
	v.delay = int64(min(placeNextMost, float64(v.before)*next+max(placePause, next/16, float64(clock-p.time)/16)))
}
