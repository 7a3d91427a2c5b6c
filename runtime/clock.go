package runtime

import "time"

// origin is what instants count from: long ago, so that they are above 0 also
// in a bubble of testing/synctest, where it is the year 2000.
var origin = time.Now().Add(-50 * 365 * 24 * time.Hour)

// instant returns the time by the process's own clock, which has no date but
// goes evenly when the wall clock is set. A call reads it once, when it arrives:
// a reading takes a third as long as deciding a call in memory, and one of the
// wall clock twice that.
func instant() time.Duration { return time.Since(origin) }

// instantOf returns when calls arrived at the limiter. For calls that a store
// was given directly that is now.
func instantOf(calls []Call) time.Duration {
	if len(calls) > 0 && calls[0].arrived != 0 {
		return calls[0].arrived
	}
	return instant()
}
