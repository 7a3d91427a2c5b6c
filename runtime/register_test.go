package runtime_test

import (
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// Goroutines that register one of two rules each: the first holds, and all others are told.
func TestRegisterTermsAtOnce(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{1, 2, 8, 256} {
		limiter, told := inMemory(), make([]string, callers)
		concurrently(callers, func(i int) {
			defer func() { told[i], _ = recover().(string) }()
			limiter.Register(&runtime.Rule{Name: "api", Window: time.Minute, Max: int64(1 + i%2)})
		})
		held := map[bool]map[int]bool{true: {}, false: {}}
		for i, text := range told {
			held[text == ""][i%2] = true
		}
		if len(held[true]) != 1 || len(held[false]) != min(callers-1, 1) {
			t.Errorf("%d callers: %v", callers, held)
		}
	}
}
