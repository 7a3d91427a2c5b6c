package runtime

import (
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

// instant returns the time by the process's own clock. A call reads it once, when
// it arrives.
func instant() time.Duration { return clock.Now() }

// instantOf returns when calls arrived at the limiter. For calls that a store
// was given directly that is now.
func instantOf(calls []Call) time.Duration {
	if len(calls) > 0 && calls[0].arrived != 0 {
		return calls[0].arrived
	}
	return clock.Now()
}
