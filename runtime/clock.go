package runtime

import (
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

// instant returns the time by the process's own clock. A call reads it once, when
// it arrives.
func instant() time.Duration { return clock.Now() }
