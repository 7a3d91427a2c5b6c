// Package seed has random tests try the same things in every run. Importing it has
// [rapid.Check] begin at [First], unless -rapid.seed is on the command line.
package seed

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	_ "pgregory.net/rapid" // registers its flags first
)

// Variable is the variable of the environment that has tests begin at another seed, which
// .ci/hunt draws.
const Variable = "RATEGEN_SEED"

func init() {
	_ = flag.Set("rapid.seed", strconv.FormatUint(First(), 10))
}

// First returns the seed that [Variable] names, or 1. It panics if that is no number above 0:
// rapid takes 0 for a seed of its own choice.
func First() uint64 {
	text := os.Getenv(Variable)
	if text == "" {
		return 1
	}
	first, err := strconv.ParseUint(text, 10, 64)
	if err != nil || first == 0 {
		panic(Variable + "=" + text + ": a number above 0 is needed")
	}
	return first
}

// New returns the random numbers of a test: by [First], and by the test's name. One
// goroutine at a time may use them.
func New(t testing.TB) *rand.Rand {
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(First(), name.Sum64()))
}
