// Package calendar knows when periods of the calendar begin and end in a time zone.
//
// A period begins at the first instant of its local date: the first at which no clock of
// the zone shows an earlier date any more for the first time. That is midnight, unless the
// zone skips it. A period whose date does not exist begins with the next date that does. So
// days of 23 and 25 hours are whole periods, and each instant lies in exactly one period.
//
// Times are in microseconds since 1970.
package calendar

import (
	"sort"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/spec"
)

// A Period is a division of all time into periods. Equal ones are one, see [Load], so it is
// compared by its address.
type Period struct {
	Unit spec.Unit
	// Zone is the name of the time zone.
	Zone string
	// Anchor is where periods begin: the day of a month, the weekday from Monday, 1, to
	// Sunday, 7, or the month times 100 and the day.
	Anchor int

	location *time.Location
	last     *atomic.Pointer[Bounds] // apart: the compiler would take At to keep its Period, and all that has one
}

// Bounds are a period, and the one that follows it.
type Bounds struct {
	Begin int64 // the first instant
	End   int64 // the first of the next period
	Next  int64 // the first of the one after that
}

// At returns the period that an instant lies in.
func (p *Period) At(now int64) Bounds {
	if b := p.last.Load(); b != nil && b.Begin <= now && now < b.End {
		return *b
	}
	b := p.find(now)
	p.last.Store(&b)
	return b
}

// Time returns an instant as clocks of the zone show it.
func (p *Period) Time(at int64) time.Time { return time.UnixMicro(at).In(p.location) }

// Before returns when the period began that ended at a time. If no period of p ends then, it
// was one of another anchor or time zone: that began as long before as periods of p's unit do
// that begin on this date.
func (p *Period) Before(end int64) int64 {
	if p.find(end).Begin == end {
		return p.find(end - 1).Begin
	}
	t, anchor := p.Time(end), 0
	switch p.Unit {
	case spec.Week:
		anchor = (int(t.Weekday())+6)%7 + 1
	case spec.Month:
		anchor = t.Day()
	case spec.Year:
		anchor = int(t.Month())*100 + t.Day()
	}
	like, err := Load(p.Unit, p.Zone, anchor)
	if err != nil {
		return p.find(end - 1).Begin // which cannot be
	}
	apart := end - like.find(end).Begin
	return like.find(end-apart-1).Begin + apart
}

// find is At, without what was found before.
func (p *Period) find(now int64) (b Bounds) {
	i := p.index(time.UnixMicro(now).In(p.location))
	b.Begin = p.begin(i)
	// A clock that was set back over midnight shows the date before once more.
	for b.End = p.begin(i + 1); b.End <= now; b.End = p.begin(i + 1) {
		i, b.Begin = i+1, b.End
	}
	// Dates that a zone has left out begin and end at once.
	for b.Next = b.End; b.Next == b.End; b.Next = p.begin(i + 1) {
		i++
	}
	return b
}

// index returns the number of the period that a local date lies in.
func (p *Period) index(t time.Time) int {
	year, month, day := t.Date()
	i := 0
	switch p.Unit {
	case spec.Week:
		// The first day of 1970 was a Thursday, the fourth day from Monday on.
		return floor(spec.Days(year, int(month), day)+4-p.Anchor, 7)
	case spec.Month:
		i = year*12 + int(month) - 1
	case spec.Year:
		i = year
	default:
		return spec.Days(year, int(month), day)
	}
	if spec.Days(year, int(month), day) < p.date(i) {
		i--
	}
	return i
}

// date returns the date of a period's begin, as days since 1970.
func (p *Period) date(i int) int {
	switch p.Unit {
	case spec.Week:
		return i*7 - 4 + p.Anchor
	case spec.Month:
		return dayOf(floor(i, 12), i-floor(i, 12)*12+1, p.Anchor)
	case spec.Year:
		return dayOf(i, p.Anchor/100, p.Anchor%100)
	}
	return i
}

// dayOf returns a date as days since 1970, or that of the last day of the month if it has
// no such day.
func dayOf(year, month, day int) int {
	return min(spec.Days(year, month, day), spec.Days(year, month+1, 0))
}

func floor(a, b int) int {
	if a%b < 0 {
		return a/b - 1
	}
	return a / b
}

// begin returns the first instant of a period.
func (p *Period) begin(i int) int64 {
	const hour = 60 * 60
	midnight := int64(p.date(i)) * 24 * hour
	// Between two changes of the zone local time goes on evenly. No zone is a day off, and
	// none changes twice in an hour.
	for t, offset := midnight-24*hour, p.offset(midnight-24*hour); ; {
		until := t + hour
		next := p.offset(until)
		if next != offset {
			until = t + 1 + int64(sort.Search(hour-1, func(i int) bool { return p.offset(t+1+int64(i)) != offset }))
		}
		if first := max(t, midnight-offset); first < until {
			return first * 1_000_000
		}
		t, offset = until, next
	}
}

// offset returns by how many seconds local time is ahead at a second since 1970. (The
// bounds that a [time.Time] tells of an offset's time are wrong at the end of leap years.)
func (p *Period) offset(t int64) int64 {
	_, offset := time.Unix(t, 0).In(p.location).Zone()
	return int64(offset)
}
