package wiring

import (
	"os"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// NewLimiter returns a limiter that follows the file that LIMITS names.
func NewLimiter(store runtime.Store) *runtime.Limiter {
	var options []runtime.Option
	if path := os.Getenv("LIMITS"); path != "" {
		options = append(options, runtime.WithOverrides(override.File(path), time.Second))
	}
	return runtime.New(store, options...)
}
