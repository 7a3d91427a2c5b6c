package calendar

import (
	"sort"
	"time"
	_ "time/tzdata" // the same on all machines

	"github.com/rategen/rategen/internal/spec"
)

// zones are zones of every kind: without changes, with changes at midnight, of half and quarter
// hours, with dates that they have left out, and that changed their rules.
var zones = []string{
	"UTC", "Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Johannesburg", "Africa/Lagos", "Africa/Nairobi",
	"Africa/Juba", "Africa/Windhoek", "America/Anchorage", "America/Araguaina", "America/Argentina/San_Luis", "America/Asuncion",
	"America/Bogota", "America/Campo_Grande", "America/Caracas", "America/Chicago", "America/Denver", "America/Godthab",
	"America/Goose_Bay", "America/Guatemala", "America/Halifax", "America/Havana", "America/Los_Angeles", "America/Mexico_City",
	"America/Montevideo", "America/New_York", "America/Phoenix", "America/Port-au-Prince", "America/Santiago", "America/Sao_Paulo",
	"America/Scoresbysund", "America/St_Johns", "America/Toronto", "Antarctica/Casey", "Antarctica/Troll", "Asia/Almaty",
	"Asia/Amman", "Asia/Beirut", "Asia/Damascus", "Asia/Dhaka", "Asia/Dubai", "Asia/Gaza", "Asia/Hebron", "Asia/Jakarta",
	"Asia/Jerusalem", "Asia/Kabul", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Pyongyang", "Asia/Shanghai", "Asia/Tehran",
	"Asia/Tokyo", "Atlantic/Azores", "Australia/Adelaide", "Australia/Lord_Howe", "Australia/Sydney", "Europe/Athens",
	"Europe/Berlin", "Europe/Dublin", "Europe/Istanbul", "Europe/Lisbon", "Europe/London", "Europe/Moscow", "Europe/Volgograd",
	"Pacific/Apia", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Enderbury", "Pacific/Fakaofo", "Pacific/Fiji",
	"Pacific/Kiritimati", "Pacific/Kwajalein", "Pacific/Norfolk", "Pacific/Tongatapu",
}

// A series is one division of time into periods.
type series struct {
	Unit   spec.Unit
	Anchor int
}

// allSeries are the divisions that tests try: every weekday, and dates that short months and
// common years do not have.
var allSeries = func() (all []series) {
	for _, of := range []struct {
		unit    spec.Unit
		anchors []int
	}{
		{spec.Day, []int{0}}, {spec.Week, []int{1, 2, 3, 4, 5, 6, 7}},
		{spec.Month, []int{1, 15, 28, 29, 30, 31}}, {spec.Year, []int{101, 229, 331, 1029, 1230, 1231}},
	} {
		for _, anchor := range of.anchors {
			all = append(all, series{of.unit, anchor})
		}
	}
	return all
}()

// starts reports whether a period begins with a date.
func (s series) starts(date time.Time) bool {
	last := date.AddDate(0, 0, 1).Month() != date.Month()
	on := func(day int) bool { return date.Day() == day || last && date.Day() < day }
	switch s.Unit {
	case spec.Week:
		return (int(date.Weekday())+6)%7+1 == s.Anchor
	case spec.Month:
		return on(s.Anchor)
	case spec.Year:
		return int(date.Month()) == s.Anchor/100 && on(s.Anchor%100)
	}
	return true
}

// A table has the first instant of every date of a zone, in microseconds since 1970.
type table struct {
	from, to int           // years
	first    map[int]int64 // by days since 1970
}

// readTable makes the table of a zone for some years, by looking at all quarters of an hour:
// nothing of the zone's changes is used.
func readTable(zone string, from, to int) (*table, error) {
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, err
	}
	dateAt := func(at int64) int {
		year, month, day := time.UnixMicro(at).In(location).Date()
		return spec.Days(year, int(month), day)
	}
	const step = int64(15 * time.Minute / time.Microsecond)
	at := time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	end := time.Date(to+1, 2, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	t, last := &table{from: from, to: to, first: map[int]int64{}}, dateAt(at)
	for ; at < end; at += step {
		date := dateAt(at)
		if date <= last {
			continue
		}
		before := at - step // the date is new within the step
		begin := before + 1 + int64(sort.Search(int(step)-1, func(i int) bool { return dateAt(before+1+int64(i)) > last }))
		for last < date {
			last++ // dates that were left out as well
			t.first[last] = begin
		}
	}
	return t, nil
}

// begins returns the begins of a division's periods, oldest first and each once.
func (t *table) begins(s series) (all []int64) {
	for date := spec.Days(t.from, 1, 2); date < spec.Days(t.to+1, 1, 1); date++ {
		begin := t.first[date]
		if s.starts(time.Unix(int64(date)*24*60*60, 0).UTC()) && (len(all) == 0 || all[len(all)-1] < begin) {
			all = append(all, begin)
		}
	}
	return all
}
