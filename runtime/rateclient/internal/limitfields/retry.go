package limitfields

import (
	"net/http"
	"strings"
	"time"
)

// maxList is how many lines of a field are read, and numbers of one that has several.
const maxList = 16

// retryAfter returns the longest time that a Retry-After says, and whether one says any.
func (r *reader) retryAfter() (wait time.Duration, said bool) {
	for _, field := range [...]string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		for _, value := range r.lines(field) {
			if ms, ok := Number(value); ok {
				wait, said = max(wait, Duration(ms, time.Millisecond)), true
			}
		}
	}
	if said {
		return wait, true // it is the exact one of the two
	}
	lines := r.lines("Retry-After")
	if len(lines) == 0 {
		lines = r.lines("X-Ratelimit-Retry-After")
	}
	for _, value := range lines {
		d, ok := timeLeft(value, r.clock)
		for i, rest := 0, value; !ok && rest != "" && i < maxList; i++ { // 30, 30
			var one string
			if one, rest, _ = strings.Cut(rest, ","); strings.Trim(one, " .0123456789") == "" {
				each, known := timeLeft(one, r.clock)
				d, said = max(d, each), said || known
			}
		}
		wait, said = max(wait, d), said || ok
	}
	return wait, said
}

// reset returns the time until a reset: 0 if it is over or unknown.
func (r *reader) reset(value string) time.Duration {
	value, _, _ = strings.Cut(value, ";")
	d, ok := timeLeft(value, r.clock)
	if !ok { // 30, 30: the first, as of the limit and what remains
		if first, _, list := strings.Cut(value, ","); list {
			d, _ = timeLeft(first, r.clock)
		}
	}
	return d
}

// clock returns the time by the peer's clock, if the answer has that.
func (r *reader) clock() time.Time {
	if date, err := http.ParseTime(r.first("Date")); err == nil {
		return date
	}
	return r.now
}
