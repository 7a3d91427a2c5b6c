// Package effort says how much a run of the tests is to try. A quick run, the
// default, tries every behavior at some points. A full run tries all of them.
package effort

import "os"

// Variable is the variable of the environment that asks for a full run with 1.
const Variable = "RATEGEN_TEST_FULL"

// MoreVariable is the variable of the environment that asks for [More] alone.
const MoreVariable = "RATEGEN_TEST_MORE"

// Full reports whether tests try everything, however long it takes.
func Full() bool { return os.Getenv(Variable) == "1" }

// More reports whether tests try what takes seconds and has quicker tests beside it: in a
// full run, under the race detector, and where [MoreVariable] asks for it with 1.
func More() bool { return Full() || raced || os.Getenv(MoreVariable) == "1" }

// All reports whether a full run tries also what takes minutes of both processors and hardly ever
// finds what the rest does not: where [MoreVariable] asks for it besides.
func All() bool { return Full() && os.Getenv(MoreVariable) == "1" }

// Choose returns quick in a quick run, and full in a full run.
func Choose[T any](quick, full T) T {
	if Full() {
		return full
	}
	return quick
}

// ChooseMore is Choose by [More].
func ChooseMore[T any](quick, more T) T {
	if More() {
		return more
	}
	return quick
}

// Few returns how many of n tries a test makes of something that proves nothing about
// races: what one goroutine does after the other, and bubbles, in which one runs at a
// time mostly. It makes all of them, but a quarter under the race detector.
func Few(n int) int {
	if raced {
		return (n + 3) / 4
	}
	return n
}

// PerProcessor is how many tests run for each processor. Most of them wait for most of
// their time. In a full run more of them compute, and under the race detector most do.
func PerProcessor() int {
	if raced {
		return 2
	}
	return Choose(6, 2)
}
