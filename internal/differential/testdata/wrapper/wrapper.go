// Package wrapper stands in for the real one.
package wrapper

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime"
)

func HoldOff(_ context.Context, l *runtime.Limiter, _ runtime.Limit, d time.Duration) {
	l.Held = max(0, d)
}
