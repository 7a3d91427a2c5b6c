package directive

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// These functions return the parse column of a row of Options.

// parseValue makes a column of a function that reads values.
func parseValue[T any](read func(Value) (T, error)) func(Value) (any, error) {
	return func(v Value) (any, error) { return read(v) }
}

// parseText is parseValue for a function that needs the text of a value only.
func parseText[T any](read func(string) (T, error)) func(Value) (any, error) {
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
