package runtime_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// panicOf returns what a function panics with, or "".
func panicOf(f func()) (text string) {
	defer func() {
		if reason := recover(); reason != nil {
			text = fmt.Sprint(reason)
		}
	}()
	f()
	return ""
}

// Goroutines that register one of two rules each: the first holds, and all others are told.
func TestRegisterTermsAtOnce(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{1, 2, 8, 256} {
		limiter, told := inMemory(), make([]string, callers)
		concurrently(callers, func(i int) {
			told[i] = panicOf(func() { limiter.Register(&runtime.Rule{Name: "api", Window: time.Minute, Max: int64(1 + i%2)}) })
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
