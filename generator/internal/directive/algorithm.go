package directive

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The algorithms, as directives name them. A rule is written with the name in
// package runtime that has the same words: fixed-window is FixedWindow.
const (
	SlidingLog     = "sliding-log"
	slidingCounter = "sliding-counter"
	fixedWindow    = "fixed-window"
	tokenBucket    = "token-bucket"
	leakyBucket    = "leaky-bucket"
	Concurrency    = "concurrency"
)

var algorithms = []string{SlidingLog, slidingCounter, fixedWindow, tokenBucket, leakyBucket, Concurrency}

// latency is the signal that the wrapper measures.
const latency = "latency"

// signals are what a max can adapt to: their names in directives and in
// package adaptive.
var signals = map[string]string{"cpu": "CPU", "memory": "Memory", latency: "Latency"}

// Bounds of a rule's numbers; the runtime checks the same ones.
const (
	maxLog     = 1_000_000
	maxLogCost = 250
	maxCount   = 1_000_000_000_000
	maxBuckets = 1000
	MaxLimits  = 8 // on one method
	maxWindow  = 366 * 24 * time.Hour
)

// Defaults of options whose values every rule has.
const (
	defaultWindow  = 60 * time.Second
	defaultHeld    = 30 * time.Second // the window of concurrency
	DefaultMax     = 100
	defaultMaxText = "100"
)

// ratesOf returns the algorithms that count calls in a time.
func ratesOf(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(a string) bool { return a == Concurrency })
}

// IsBucket reports whether an algorithm keeps a level that drains.
func IsBucket(algorithm string) bool { return algorithm == tokenBucket || algorithm == leakyBucket }

// MostOf returns the largest max of an algorithm.
func MostOf(algorithm string) int64 {
	if isStored(algorithm) {
		return maxLog
	}
	return maxCount
}

// MostCost returns the largest cost of one call that an algorithm takes.
func MostCost(algorithm string) int64 {
	if isStored(algorithm) {
		return maxLogCost
	}
	return maxCount
}

// isStored reports whether Redis stores every event that an algorithm counts.
func isStored(algorithm string) bool { return algorithm == SlidingLog || algorithm == Concurrency }

// otherAlgorithms lists the algorithms but the first for the manual.
func otherAlgorithms() string {
	last := len(algorithms) - 1
	return "`" + strings.Join(algorithms[1:last], "`, `") + "` or `" + algorithms[last] + "`"
}

var storages = []string{"zset", "packed"}

func parseStorage(name string) (string, error) {
	if name == "list" {
		return name, &choiceError{`"list" is no storage any more: use packed, which decides alike and takes less memory`, storages}
	}
	return name, checkChoice(name, storages)
}

func parseAlgorithm(name string) (string, error) {
	if slices.Contains(algorithms, name) {
		return name, nil
	}
	return name, &choiceError{fmt.Sprintf("unknown name %q%s: the algorithms are %s", name, Suggest(name, algorithms), strings.Join(algorithms, ", ")), algorithms}
}
