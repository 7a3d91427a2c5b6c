package directive

import (
	"errors"
	"fmt"
	"go/token"
	"slices"
	"strings"
)

// A partError is an error in a part of a value.
type partError struct {
	pos  token.Pos
	over string // the part
	error
}

func (e *partError) Unwrap() error { return e.error }

func parseSignals(v Value) ([]string, error) {
	parts, err := splitParts(v)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, part := range parts {
		if err := checkChoice(part.Text, []string{"cpu", "memory", latency}); err != nil {
			return nil, &partError{part.Pos, part.Text, err}
		}
		if slices.Contains(found, part.Text) {
			return nil, &partError{part.Pos, part.Text, fmt.Errorf("%q is given twice; remove one", part.Text)}
		}
		found = append(found, part.Text)
	}
	return found, nil
}

// splitParts cuts a value at its top-level commas.
func splitParts(v Value) ([]Value, error) {
	var parts []Value
	for start := 0; ; {
		end := cut(v.Text[start:], ",")
		if end < 0 {
			return nil, fmt.Errorf("a quote or bracket is never closed")
		}
		part := v.Text[start : start+end]
		lead := len(part) - len(strings.TrimLeft(part, " \t"))
		text := strings.TrimSpace(part)
		if text == "" {
			return nil, &partError{v.At(start), "", errors.New("a part is empty; remove a comma, or write what is missing")}
		}
		parts = append(parts, Value{Pos: v.At(start + lead), Text: text, Exact: v.Exact})
		start += end + 1
		if start > len(v.Text) {
			return parts, nil
		}
	}
}
