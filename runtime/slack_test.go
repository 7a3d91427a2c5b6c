//go:build !race

package runtime_test

import (
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
)

// slack is what a busy machine may add to a bound in time.
const slack = time.Second

// perProcessor is how many tests run for each processor. Most of them wait for most of
// their time. In a full run more of them compute.
func perProcessor() int { return effort.Choose(4, 2) }
