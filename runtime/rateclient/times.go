package rateclient

import (
	"cmp"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	// maxList is how many lines of a field are read, and numbers of one that has several.
	maxList = 16
	// maxField is how long a list may be that is read, in bytes.
	maxField = 8 << 10
	// maxWord is how long a number or a date may be.
	maxWord = 64
)

// retryAfter returns the longest time that a Retry-After says, and whether one says any.
func (r *reader) retryAfter() (wait time.Duration, said bool) {
	for _, field := range [...]string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		for _, value := range r.lines(field) {
			if ms, ok := number(value); ok {
				wait, said = max(wait, duration(ms, time.Millisecond)), true
			}
		}
	}
	if said {
		return wait, true // it is the exact one of the two
	}
	for _, value := range r.lines("Retry-After") {
		d, ok := r.until(value)
		for i, rest := 0, value; !ok && rest != "" && i < maxList; i++ { // 30, 30
			var one string
			if one, rest, _ = strings.Cut(rest, ","); strings.Trim(one, " .0123456789") == "" {
				each, known := r.until(one)
				d, said = max(d, each), said || known
			}
		}
		wait, said = max(wait, d), said || ok
	}
	return wait, said
}

// until returns the time until a moment, and 0 if it is over. It is false for what is none.
func (r *reader) until(value string) (d time.Duration, ok bool) {
	if value = strings.TrimSpace(value); len(value) > maxWord {
		return 0, false
	}
	if n, ok := number(value); ok {
		switch {
		case n < 1e9: // seconds from now; as a Unix time it would be before 2001
			return duration(n, time.Second), true
		case n < 1e11:
			return r.timeUntil(time.UnixMilli(int64(n * 1000))), true
		case n < 1e14:
			return r.timeUntil(time.UnixMilli(int64(n))), true
		case n < 1e17:
			return r.timeUntil(time.UnixMicro(int64(n))), true
		case n < 9e18:
			return r.timeUntil(time.Unix(0, int64(n))), true
		}
		return 0, false
	}
	if d, ok := span(value); ok {
		return d, true
	}
	if at, ok := date(value); ok {
		return r.timeUntil(at), true
	}
	return 0, false
}

// reset returns the time until a reset: 0 if it is over or unknown.
func (r *reader) reset(value string) time.Duration {
	value, _, _ = strings.Cut(value, ";")
	d, ok := r.until(value)
	if !ok { // 30, 30: the first, as of the limit and what remains
		if first, _, list := strings.Cut(value, ","); list {
			d, _ = r.until(first)
		}
	}
	return d
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
		n, isNumber := number(text[:len(text)-len(word)])
		word = strings.TrimLeft(word, " ")
		text = strings.TrimLeftFunc(word, unicode.IsLetter)
		name := word[:len(word)-len(text)]
		unit := cmp.Or(units[name], units[strings.TrimSuffix(name, "s")])
		if !isNumber || unit == 0 {
			return 0, false
		}
		d, text, ok = min(d+duration(n, unit), maxTime), strings.TrimLeft(text, " "), true
	}
	return d, ok
}

// timeUntil returns the time until a moment by the peer's clock, if the answer has that, and
// 0 if it is over.
func (r *reader) timeUntil(at time.Time) time.Duration {
	now := r.now
	if value := r.first("Date"); len(value) <= maxWord {
		if date, err := http.ParseTime(value); err == nil {
			now = date
		}
	}
	return min(max(0, at.Sub(now)), maxTime)
}

// layouts are the forms of dates that services send beside those of RFC 9110. A time without a
// zone is UTC.
var layouts = []string{
	time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04",
	"2006-01-02 15:04:05", "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 -0700 MST",
	"Mon, 2 Jan 2006 15:04:05 MST", "Mon, 2 Jan 2006 15:04:05 -0700",
}

// date reads a date.
func date(value string) (time.Time, bool) {
	if at, err := http.ParseTime(value); err == nil {
		return at, true
	}
	for _, layout := range layouts {
		at, err := time.Parse(layout, value)
		// time.Parse gives the name of any other zone an offset of 0, or the machine's.
		if zone, _ := at.Zone(); err == nil && (zone == "UTC" || zone == "GMT" || !strings.HasSuffix(layout, ":05 MST")) {
			return at, true
		}
	}
	return time.Time{}, false
}

// number reads a decimal number that is not negative.
func number(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 30 || strings.Trim(text, "0123456789.") != "" {
		return 0, false // ParseFloat would take "1e9", "0x1p3", "inf" and "nan"
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// duration returns n units, up to maxTime. It is 0 for a negative n.
func duration(n float64, unit time.Duration) time.Duration {
	if n >= float64(maxTime/unit) {
		return maxTime
	}
	return time.Duration(math.Round(max(0, n) * float64(unit)))
}
