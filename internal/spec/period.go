package spec

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Unit is how long periods of the calendar are.
type Unit uint8

const (
	NoUnit Unit = iota
	Day
	Week
	Month
	Year
	Units // how many there are, with NoUnit
)

var units = [Units]string{Day: "day", Week: "week", Month: "month", Year: "year"}

// String returns the unit as a directive spells it.
func (u Unit) String() string {
	if u < Units {
		return units[u]
	}
	return fmt.Sprintf("Unit(%d)", uint8(u))
}

// UnitOf returns the unit of a name, or NoUnit.
func UnitOf(name string) Unit {
	for u := Day; u < Units; u++ {
		if units[u] == name {
			return u
		}
	}
	return NoUnit
}

// Longest returns a time that no period of the unit is longer than: no zone sets its clocks
// back by more than four hours in one.
func (u Unit) Longest() time.Duration {
	return time.Duration([Units]int{Day: 1, Week: 7, Month: 31, Year: 366}[u])*24*time.Hour + 4*time.Hour
}

// First returns the anchor of the first day of the unit, or 0 of one that has no anchor.
func (u Unit) First() int { return [Units]int{Week: 1, Month: 1, Year: 101}[u] }

// Days returns a date as days since 1970.
func Days(year, month, day int) int {
	at := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Unix()
	return int((at - (at%(24*60*60)+24*60*60)%(24*60*60)) / (24 * 60 * 60))
}

// CheckAnchor returns what is wrong with an anchor of a unit. 0 is none.
func CheckAnchor(unit Unit, anchor int) error {
	switch {
	case unit == NoUnit || unit >= Units:
		return fmt.Errorf("unknown period %d", unit)
	case anchor == 0:
	case unit == Day:
		return fmt.Errorf("a day begins at its first instant: leave the anchor out")
	case unit == Week && (anchor < 1 || anchor > 7):
		return fmt.Errorf("anchor %d is no weekday from 1, Monday, to 7, Sunday", anchor)
	case unit == Month && (anchor < 1 || anchor > 31):
		return fmt.Errorf("anchor %d is no day of a month from 1 to 31", anchor)
	case unit == Year && !isDate(anchor):
		return fmt.Errorf("anchor %d is no date of a year, its month times 100 and its day, from 101 to 1231", anchor)
	}
	return nil
}

var weekdays = [...]string{1: "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// ParseAnchor reads an anchor as directives spell it: 15, monday or 04-01.
func ParseAnchor(text string) (int, error) {
	if n := slices.Index(weekdays[:], text); n > 0 {
		return n, nil
	}
	if month, day, ok := strings.Cut(text, "-"); ok && len(month) == 2 && len(day) == 2 {
		m, err := strconv.Atoi(month)
		d, err2 := strconv.Atoi(day)
		if n := m*100 + d; err == nil && err2 == nil && isDate(n) {
			return n, nil
		}
	} else if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= 31 {
		return n, nil
	}
	return 0, fmt.Errorf("%q is not where a period begins: write a day of the month such as 15, a weekday such as monday, the month and day of a year as in 04-01, or an expression such as #plan.BillingDay", text)
}

// AnchorText returns an anchor of a unit as directives spell it, or "" for 0.
func AnchorText(unit Unit, anchor int) string {
	if anchor == 0 {
		return ""
	}
	if unit == Week && anchor < len(weekdays) {
		return weekdays[anchor]
	}
	if unit == Year {
		return fmt.Sprintf("%02d-%02d", anchor/100, anchor%100)
	}
	return strconv.Itoa(anchor)
}

// isDate reports whether an anchor is a date that some year has.
func isDate(anchor int) bool {
	const leap = 2000
	month, day := anchor/100, anchor%100
	return anchor > 0 && month >= 1 && month <= 12 && day >= 1 && Days(leap, month, day) < Days(leap, month+1, 1)
}

// maxZone is the longest name of a zone in bytes that is looked up. A caller may choose it.
const maxZone = 64

// Zone returns a zone of the zone table, UTC for an empty name. That of the machine has no
// name that all replicas agree on. A zone table in files finds "Europe//Berlin" too: a zone
// has one name, or callers could have as many kept as they can spell.
func Zone(zone string) (*time.Location, error) {
	if zone == "Local" || len(zone) > maxZone || zone != "" && path.Clean(zone) != zone {
		return nil, fmt.Errorf("%.64q is no time zone that all replicas know: write a name of the IANA zone table such as Europe/Berlin", zone)
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("time zone %q is not known here: write a name of the IANA zone table such as Europe/Berlin, and import time/tzdata where the system has no zone table", zone)
	}
	return location, nil
}

// CheckKeep returns what is wrong with a number of periods whose counts are kept, by itself.
func CheckKeep(n int64) error {
	if n < 1 || n > MaxKeep {
		return fmt.Errorf("%d is not an integer between 1 and %d", n, MaxKeep)
	}
	return nil
}

// FitsKeep returns what keeps the rule from keeping counts.
func (r *Rule) FitsKeep() error {
	if !r.Period {
		return errors.New("a window of a duration begins with its first call, so there are no last ones of all callers: remove keep, or write window=day, week, month or year")
	}
	return nil
}

// FitsLedger returns what keeps a ledger from reading the counts of the rule.
func (r *Rule) FitsLedger() error {
	if !r.Period {
		return errors.New("a ledger has what was used of a day, week, month or year: remove ledger, or write window=month")
	}
	if r.Lease > 0 {
		return errors.New("a lease charges ahead what may never be used, and a ledger would have it: remove ledger or lease")
	}
	return nil
}

// KeptForLedger returns of how many periods of a unit counts are kept until a ledger has read them:
// of those in 35 days.
func (u Unit) KeptForLedger() uint8 { return [Units]uint8{Day: 35, Week: 5, Month: 2, Year: 1}[u] }
