package runtime

import (
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

func instant() time.Duration { return clock.Now() }

// instantOf returns when calls arrived at the limiter. For calls that a store
// was given directly that is now.
func instantOf(calls []Call) time.Duration {
	if len(calls) > 0 && calls[0].came != 0 {
		return calls[0].came
	}
	return clock.Now()
}
