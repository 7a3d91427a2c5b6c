// Package clock reads the process's own clock. The engine measures by it how
// long ago something was: when a call arrived, when a batch was sent, until when
// a denial holds.
package clock

import "time"

// origin lies long ago, so that instants are above 0 also in a bubble of
// testing/synctest, whose clock begins in the year 2000.
var origin = time.Now().Add(-50 * 365 * 24 * time.Hour)

// Now returns the time since a fixed moment, by the monotonic clock: it goes on
// evenly when the wall clock is set. A reading takes a third as long as deciding
// a call in memory, so a call reads it once and passes the instant on.
func Now() time.Duration { return time.Since(origin) }

// At returns the instant of a time, such as the deadline of a context.
func At(t time.Time) time.Duration { return t.Sub(origin) }

// Time returns the time of an instant.
func Time(at time.Duration) time.Time { return origin.Add(at) }

// Await waits until done is closed, and reports false if that is not within a time.
func Await(done <-chan struct{}, within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
