package terms

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Each decision has one flag, and so many decisions share a piece of memory.
func TestFlagIssuer(t *testing.T) {
	t.Parallel()
	var issuer FlagIssuer
	seen := map[*Flags]int{}
	for range 3 * flagCount {
		flags, flag := issuer.Issue()
		seen[flags]++
		if !flags.Set(flag) || flags.Set(flag) {
			t.Fatal("a flag is not set once")
		}
	}
	for _, n := range seen {
		if n != flagCount {
			t.Errorf("%d decisions share flags", n)
		}
	}
}

// However many set a flag at once, one of them was the first.
func TestFlagIsSetOnce(t *testing.T) {
	t.Parallel()
	var flags Flags
	var first atomic.Int64
	var users sync.WaitGroup
	for range 8 {
		users.Go(func() {
			for flag := range uint16(flagCount) {
				if flags.Set(flag) {
					first.Add(1)
				}
			}
		})
	}
	users.Wait()
	if first.Load() != flagCount {
		t.Errorf("%d of %d flags had a first user", first.Load(), flagCount)
	}
}
