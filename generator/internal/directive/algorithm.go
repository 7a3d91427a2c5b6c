package directive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rategen/rategen/internal/algorithm"
)

// A rule is written with the name in package runtime that has the words of its algorithm:
// fixed-window is FixedWindow.
var algorithms = algorithm.Names

// latency is the signal that the wrapper measures.
const latency = "latency"

// signals are what a max can adapt to: their names in directives and in
// package adaptive.
var signals = map[string]string{"cpu": "CPU", "memory": "Memory", latency: "Latency"}

// Defaults of options whose values every rule has.
const (
	DefaultMax     = 100
	defaultMaxText = "100"
)

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
