package directive

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/spec"
)

// A rule is written with the name in package runtime that has the words of its algorithm:
// fixed-window is FixedWindow.
var algorithms = spec.Algorithms[:]

// latency is the signal that the wrapper measures.
const latency = "latency"

// signals are what a max can adapt to: their names in directives and in
// package adaptive.
var signals = map[string]string{"cpu": "CPU", "memory": "Memory", latency: "Latency"}

// Defaults of options whose values every rule has.
const (
	defaultWindow  = 60 * time.Second
	defaultHeld    = 30 * time.Second // the window of concurrency
	DefaultMax     = 100
	defaultMaxText = "100"
)

// ratesOf returns the algorithms that count calls in a time.
func ratesOf(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(a string) bool { return a == spec.Concurrency })
}

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
