package limitfields

import (
	"cmp"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// MaxTime is the longest time that is read.
const MaxTime = 366 * 24 * time.Hour

// timeLeft returns the time from now, by a clock, until what a value names: a number of seconds, a Unix time, a
// duration or a date. It is 0 if that is over, and false for what is none.
func timeLeft(value string, clock func() time.Time) (d time.Duration, ok bool) {
	if value = strings.TrimSpace(value); len(value) > maxWord {
		return 0, false
	}
	from := func(at time.Time) time.Duration { return min(max(0, at.Sub(clock())), MaxTime) }
	if n, ok := Number(value); ok {
		if n < 1e9 { // seconds from now; as a Unix time it would be before 2001
			return Duration(n, time.Second), true
		}
		if n < 1e11 {
			return from(time.UnixMilli(int64(n * 1000))), true
		}
		if n < 1e14 {
			return from(time.UnixMilli(int64(n))), true
		}
		if n < 1e17 {
			return from(time.UnixMicro(int64(n))), true
		}
		if n < 9e18 {
			return from(time.Unix(0, int64(n))), true
		}
		return 0, false
	}
	if d, ok := span(value); ok {
		return d, true
	}
	if at, ok := date(value); ok {
		return from(at), true
	}
	return 0, false
}

// units are those of durations, as people, Go and ISO 8601 write them, in lower case.
var units = map[string]time.Duration{
	"ns": 1, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond, "millisecond": time.Millisecond,
	"s": time.Second, "sec": time.Second, "second": time.Second, "m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour, "d": 24 * time.Hour, "day": 24 * time.Hour,
}

// span reads a duration: 6m0s as Go writes it, PT6M of ISO 8601, or 6 minutes.
func span(text string) (d time.Duration, ok bool) {
	text = strings.ToLower(text)
	if rest, iso := strings.CutPrefix(text, "p"); iso {
		days, clock, _ := strings.Cut(rest, "t")
		if strings.ContainsAny(days, "ym") { // of no certain length
			return 0, false
		}
		text = days + clock
	}
	for text != "" {
		word := strings.TrimLeft(text, "0123456789.")
		n, isNumber := Number(text[:len(text)-len(word)])
		word = strings.TrimLeft(word, " ")
		text = strings.TrimLeftFunc(word, unicode.IsLetter)
		name := word[:len(word)-len(text)]
		unit := cmp.Or(units[name], units[strings.TrimSuffix(name, "s")])
		if !isNumber || unit == 0 {
			return 0, false
		}
		d, text, ok = min(d+Duration(n, unit), MaxTime), strings.TrimLeft(text, " "), true
	}
	return d, ok
}

// layouts are the forms of dates that services send beside those of RFC 9110. A time without a
// zone is UTC.
var layouts = []string{
	time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04",
	"2006-01-02 15:04:05", "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 -0700 MST",
	"Mon, 2 Jan 2006 15:04:05 MST", "Mon, 2 Jan 2006 15:04:05 -0700",
	"Mon Jan 2 2006 15:04:05 GMT-0700", // of JavaScript, without the name of its zone
}

// date reads a date.
func date(value string) (time.Time, bool) {
	if len(value) > maxWord {
		return time.Time{}, false
	}
	if at, err := http.ParseTime(value); err == nil {
		return at, true
	}
	value, _, _ = strings.Cut(value, " (")
	for _, layout := range layouts {
		at, err := time.Parse(layout, value)
		// time.Parse gives the name of any other zone an offset of 0, or the machine's.
		if zone, _ := at.Zone(); err == nil && (zone == "UTC" || zone == "GMT" || !strings.HasSuffix(layout, ":05 MST")) {
			return at, true
		}
	}
	return time.Time{}, false
}

// Number reads a decimal number that is not negative.
func Number(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 30 || strings.Trim(text, "0123456789.") != "" {
		return 0, false // ParseFloat would take "1e9", "0x1p3", "inf" and "nan"
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// Duration returns n units, up to MaxTime. It is 0 for a negative n.
func Duration(n float64, unit time.Duration) time.Duration {
	if n >= float64(MaxTime/unit) {
		return MaxTime
	}
	return time.Duration(math.Round(max(0, n) * float64(unit)))
}
