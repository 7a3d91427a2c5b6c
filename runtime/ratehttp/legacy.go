package ratehttp

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/ratefield"
)

// writeLegacy writes the older fields, about the limit that is closest to its end, unless they
// are there already, from a server behind this one that is stricter. They are no lists, and
// belong together.
func (c *config) writeLegacy(h http.Header, limits []ratefield.State, status int) {
	var closest *ratefield.State
	for i := range limits {
		l := &limits[i]
		if !l.Counted || c.policies.Lookup(l.Rule, l.Outgoing).Audience != ratefield.Public {
			continue
		}
		if closest == nil || l.Refused && !closest.Refused || l.Refused == closest.Refused && l.Left < closest.Left {
			closest = l
		}
	}
	if closest == nil {
		return
	}
	now := time.Now()
	whole := now.Add(closest.ResetAfter + time.Second - 1)
	if !closest.Refused && upstreamIsStricter(h, status, max(0, closest.Left), now.Unix(), whole.Unix()) {
		return
	}
	h[limitLegacy] = []string{strconv.FormatInt(closest.Quota, 10)}
	h[leftLegacy] = []string{strconv.FormatInt(max(0, closest.Left), 10)}
	h[resetLegacy] = []string{strconv.FormatInt(whole.Unix(), 10)}
}

// upstreamIsStricter reports whether the older fields in a header admit less than ours do: less
// is left of the quota or, of as much, it comes back later. A 429 that is not ours is that of
// the server behind.
func upstreamIsStricter(h http.Header, status int, left, now, reset int64) bool {
	if status == http.StatusTooManyRequests && (h[limitLegacy] != nil || h[leftLegacy] != nil || h[resetLegacy] != nil) {
		return true
	}
	theirs, ok := leadingNumber(h.Get(leftLegacy))
	if !ok || theirs != left {
		return ok && theirs < left
	}
	at, ok := leadingNumber(h.Get(resetLegacy))
	if at < maxDelta {
		at += now
	} else if at > minMilliseconds {
		at /= 1000
	}
	return ok && at > reset
}

// Servers write the time of a reset as seconds from now, or as seconds or milliseconds since 1970.
const (
	maxDelta        = 100_000_000 // three years
	minMilliseconds = 100_000_000_000
)

// leadingNumber returns the number that a value begins with: some servers write a list.
func leadingNumber(value string) (n int64, ok bool) {
	digits := len(value) - len(strings.TrimLeft(value, "0123456789"))
	n, err := strconv.ParseInt(value[:digits], 10, 64)
	return n, err == nil
}
