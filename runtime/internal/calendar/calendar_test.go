package calendar

import (
	"testing"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/seed"
)

// TestPeriods holds every boundary of periods in all zones, to the microsecond, against
// what local clocks show.
func TestPeriods(t *testing.T) {
	t.Parallel()
	from, to := effort.Choose(2011, 1990), effort.Choose(2012, 2100)
	if len(zones) < 60 {
		t.Fatalf("%d zones", len(zones))
	}
	for i := 0; i < len(zones); i += effort.Choose(3, 1) {
		zone := zones[i]
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			table, err := readTable(zone, from, to)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range allSeries {
				p, err := Load(s.Unit, zone, s.Anchor)
				if err != nil {
					t.Fatal(err)
				}
				compare(t, p, table.begins(s))
			}
		})
	}
}

// compare holds a period against the begins that it should have, from both sides of each
// boundary, and at random between some.
func compare(t *testing.T, p *Period, begins []int64) {
	random := seed.New(t)
	for i := range len(begins) - 2 {
		want := Bounds{begins[i], begins[i+1], begins[i+2]}
		same := func(found string, at int64, got Bounds) {
			if got != want {
				t.Fatalf("%v in %s, anchor %d: %s at %v: %v, want %v", p.Unit, p.Zone, p.Anchor, found, time.UnixMicro(at).UTC(), got, want)
			}
		}
		last := want.End - 1
		same("found", want.Begin, p.At(want.Begin)) // the one before is remembered
		same("found", last, p.find(last))
		same("remembered", last, p.At(last))
		if i%16 == 0 {
			at := want.Begin + random.Int64N(want.End-want.Begin)
			same("found", at, p.find(at))
		}
		if longest := p.Unit.Longest().Microseconds(); want.End-want.Begin > longest {
			t.Errorf("%v in %s, anchor %d: %v is longer than any", p.Unit, p.Zone, p.Anchor, want)
		}
	}
}

// TestBoundaries states boundaries that people can look up.
func TestBoundaries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unit            spec.Unit
		zone            string
		anchor          int
		now, begin, end string
	}{
		{spec.Day, "", 0, "2026-11-25T21:00:00Z", "2026-11-25T00:00:00Z", "2026-11-26T00:00:00Z"},
		{spec.Day, "Europe/Berlin", 0, "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},     // 23 hours
		{spec.Day, "Europe/Berlin", 0, "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},     // 25 hours
		{spec.Day, "America/Sao_Paulo", 0, "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}, // no midnight
		{spec.Day, "Pacific/Apia", 0, "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},      // the 30th was left out
		{spec.Month, "Pacific/Apia", 30, "2011-12-31T00:00:00Z", "2011-12-30T10:00:00Z", "2012-01-29T10:00:00Z"},
		{spec.Week, "", 7, "2026-11-25T21:00:00Z", "2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"},
		{spec.Week, "", 0, "2026-11-25T21:00:00Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"},
		{spec.Month, "", 31, "2027-02-27T23:59:59Z", "2027-01-31T00:00:00Z", "2027-02-28T00:00:00Z"},
		{spec.Month, "", 31, "2028-02-28T23:59:59Z", "2028-01-31T00:00:00Z", "2028-02-29T00:00:00Z"},
		{spec.Year, "", 229, "2027-03-01T00:00:00Z", "2027-02-28T00:00:00Z", "2028-02-29T00:00:00Z"},
		{spec.Year, "Asia/Kolkata", 401, "2026-03-31T18:29:59Z", "2025-03-31T18:30:00Z", "2026-03-31T18:30:00Z"},
		{spec.Month, "UTC", 0, "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-02-01T00:00:00Z"},
	} {
		p, err := Load(c.unit, c.zone, c.anchor)
		if err != nil {
			t.Fatal(err)
		}
		at := func(text string) int64 {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			return at.UnixMicro()
		}
		if b := p.At(at(c.now)); b.Begin != at(c.begin) || b.End != at(c.end) {
			t.Errorf("%v in %q, anchor %d, at %s: from %v to %v, want %s to %s", c.unit, c.zone, c.anchor, c.now,
				time.UnixMicro(b.Begin).UTC(), time.UnixMicro(b.End).UTC(), c.begin, c.end)
		}
	}
}

// TestOf wants one Period for all that means the same, at no allocation, and errors for
// what means nothing.
func TestOf(t *testing.T) {
	one, err := Load(spec.Month, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := Load(spec.Month, "UTC", 1); err != nil || other != one {
		t.Errorf("UTC from the 1st is %p, %v; the default is %p", other, err, one)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = Load(spec.Month, "UTC", 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for _, c := range []key{
		{spec.Month, "Mars/Olympus", 1}, {spec.Month, "Local", 1}, {spec.Month, "../etc/passwd", 1}, {spec.Month, "Europe//Berlin", 1}, {spec.Month, "Europe/./Berlin", 1}, {spec.Month, "./UTC", 1},
		{spec.Month, string(make([]byte, 1000)), 1},
		{spec.Month, "", -1}, {spec.Month, "", 32}, {spec.Week, "", 8}, {spec.Week, "", -1}, {spec.Day, "", 1}, {spec.Year, "", 230}, {spec.Year, "", 1301},
		{spec.Year, "", 431}, {spec.Year, "", 100}, {spec.Year, "", -101}, {spec.NoUnit, "", 0}, {spec.Units, "", 0},
	} {
		if p, err := Load(c.unit, c.zone, c.anchor); err == nil {
			t.Errorf("%+v: %+v", c, p)
		}
	}
	for u := spec.Day; u < spec.Units; u++ {
		if spec.UnitOf(u.String()) != u || u.Longest() == 0 {
			t.Errorf("unit %d is called %q and takes up to %v", u, u, u.Longest())
		}
	}
}

// TestBefore wants periods before others, also before those that begin where none of the
// calendar does.
func TestBefore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unit       spec.Unit
		zone       string
		anchor     int
		end, begin string
	}{
		{spec.Month, "Europe/Berlin", 15, "2026-11-14T23:00:00Z", "2026-10-14T22:00:00Z"},
		{spec.Month, "Europe/Berlin", 31, "2026-03-30T22:00:00Z", "2026-02-27T23:00:00Z"},
		{spec.Month, "", 1, "2026-11-14T18:30:00Z", "2026-10-14T18:30:00Z"}, // the 15th in Kolkata
		{spec.Month, "", 1, "2026-03-30T18:30:00Z", "2026-02-28T18:30:00Z"},
		{spec.Week, "", 1, "2026-11-25T07:00:00Z", "2026-11-18T07:00:00Z"},
		{spec.Day, "Europe/Berlin", 0, "2026-03-30T12:00:00Z", "2026-03-29T13:00:00Z"},
		{spec.Year, "", 101, "2028-02-29T01:00:00Z", "2027-02-28T01:00:00Z"},
	} {
		p, err := Load(c.unit, c.zone, c.anchor)
		if err != nil {
			t.Fatal(err)
		}
		end, err := time.Parse(time.RFC3339, c.end)
		if err != nil {
			t.Fatal(err)
		}
		if begin := time.UnixMicro(p.Before(end.UnixMicro())).UTC().Format(time.RFC3339); begin != c.begin {
			t.Errorf("%v of %q and %d before %s began at %s, want %s", c.unit, c.zone, c.anchor, c.end, begin, c.begin)
		}
	}
}
