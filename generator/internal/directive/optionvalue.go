package directive

import (
	"errors"
	"fmt"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// as makes a column of the option table of a function that reads values.
func as[T any](read func(Value) (T, error)) func(Value) (any, error) {
	return func(v Value) (any, error) { return read(v) }
}

// text is like as for a function that needs the text of a value only.
func text[T any](read func(string) (T, error)) func(Value) (any, error) {
	return func(v Value) (any, error) { return read(v.Text) }
}

// expression takes a Go expression as it is. It is checked later, for each
// method that it applies to.
func expression(v Value) (any, error) { return v, nil }

// printable accepts printable text of 1 to most bytes.
func printable(most int) func(Value) (any, error) {
	return func(v Value) (any, error) { return v.Text, checkText(v.Text, most) }
}

// oneOf accepts one of some words.
func oneOf(choices ...string) func(Value) (any, error) {
	return func(v Value) (any, error) { return v.Text, checkChoice(v.Text, choices) }
}

func checkText(text string, most int) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("the text is empty; leave the option out for its default")
	case len(text) > most:
		return fmt.Errorf("the text has %d bytes, the most is %d", len(text), most)
	}
	for _, c := range text {
		if !unicode.IsPrint(c) {
			return fmt.Errorf("the text holds the unprintable character %q", c)
		}
	}
	return nil
}

func checkChoice(text string, choices []string) error {
	if slices.Contains(choices, text) {
		return nil
	}
	return &choiceError{fmt.Sprintf("%q is none of %s%s", text, strings.Join(choices, ", "), Suggest(text, choices)), choices}
}

// A choiceError is a value that is none of those to choose from.
type choiceError struct {
	text    string
	choices []string
}

func (e *choiceError) Error() string { return e.text }

// A partError is an error in a part of a value.
type partError struct {
	pos  token.Pos
	over string // the part
	error
}

func (e *partError) Unwrap() error { return e.error }

func parseBurst(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > maxCount {
		return 0, fmt.Errorf("%q is not an integer between 1 and %d", text, int64(maxCount))
	}
	return n, nil
}

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
