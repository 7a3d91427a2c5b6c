//go:build race

package runtime_test

import "time"

// slack is what a busy machine may add to a bound in time. The race detector makes
// everything several times as slow, and bounds are held to more strictly without it.
const slack = 5 * time.Second

// perProcessor is how many tests run for each processor: fewer than without the race
// detector, with which most of them compute for most of their time.
func perProcessor() int { return 2 }
