package runtime_test

import (
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// shadowRules returns a rule of each kind that admits one call an hour, in shadow mode.
func shadowRules() []runtime.Rule {
	rules := []runtime.Rule{
		{},
		{Storage: runtime.StoragePacked},
		{Algorithm: runtime.SlidingCounter},
		{Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10)},
		{Algorithm: runtime.FixedWindow},
		{Algorithm: runtime.TokenBucket},
		{Algorithm: runtime.LeakyBucket},
		{Algorithm: runtime.LeakyBucket, Wait: 10 * time.Hour},
		{Wait: 10 * time.Hour},
	}
	for i := range rules {
		rules[i].Name, rules[i].Window, rules[i].Max, rules[i].Mode = fmt.Sprint("shadow", i), time.Hour, 1, runtime.ModeShadow
	}
	return rules
}
