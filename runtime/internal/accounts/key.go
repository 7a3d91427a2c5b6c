package accounts

import (
	"strings"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/calendar"
)

// A Key is a key in Redis of a rule.
type Key struct {
	Text string
	*account
}

// Parts returns what tells the key from others of its rule, as [rule.Key.String] returns it.
func (k Key) Parts() string { return string(k.Plan.Parts([]byte(k.Text))) }

// Namespace returns that of the key's limiter.
func (k Key) Namespace() string { return k.namespace }

// Time returns a time in the time zone of the key.
func (k Key) Time(t time.Time) time.Time { return k.Numbers.Period.Time(t.UnixMicro()) }

// Day returns the date at a time in the time zone of the key.
func (k Key) Day(at int64) time.Time {
	year, month, day := k.Numbers.Period.Time(at).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// Bounds returns when a day begins and ends in the time zone of the key, of which it is handed the date.
func (k Key) Bounds(date time.Time) (start, end time.Time) {
	p := k.Numbers.Period
	day, err := calendar.Load(spec.Day, p.Zone, 0)
	if err != nil {
		return date, date.AddDate(0, 0, 1)
	}
	noon := time.Date(date.Year(), date.Month(), date.Day(), 12, 0, 0, 0, p.Time(0).Location())
	b := day.At(noon.UnixMicro())
	return p.Time(b.Begin), p.Time(b.End)
}

func compare(a, b Key) int { return strings.Compare(a.Text, b.Text) }
