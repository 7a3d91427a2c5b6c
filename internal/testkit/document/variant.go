package document

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Variants returns each combination of the values that a scenario is to be played for, as
// text to replace and its replacement.
func (s *Scenario) Variants() (all [][]string) {
	all = [][]string{nil}
	for _, a := range s.Args {
		if !strings.HasPrefix(a.Name, "$") {
			continue
		}
		var next [][]string
		for _, v := range a.Values {
			for _, before := range all {
				next = append(next, append(slices.Clone(before), a.Name, v))
			}
		}
		all = next
	}
	return all
}

// ValueName returns the name of a value in a variant.
func ValueName(name, value string) string {
	if strings.Contains(value, "=") {
		return value
	}
	return name[1:] + "=" + value
}

// Repeated returns what a step says, and how often.
func Repeated(text string) (string, int) {
	n, rest, is := strings.Cut(text, "x ")
	if times, err := strconv.Atoi(n); is && err == nil {
		return rest, times
	}
	return text, 1
}

var manifold = regexp.MustCompile(`\{(\d+)x([^}]*)\}`)

// Expand returns a text in which {9xTEXT} stands for a text nine times, and ␀ for a byte 0.
func Expand(text string) string {
	return manifold.ReplaceAllStringFunc(strings.ReplaceAll(text, "␀", "\x00"), func(found string) string {
		m := manifold.FindStringSubmatch(found)
		n, _ := strconv.Atoi(m[1])
		return strings.Repeat(m[2], n)
	})
}
