package directive

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/rategen/rategen/internal/nearest"
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

const retryAfter = "{retry_after}"

var placeholder = regexp.MustCompile(`\{\w[\w .-]*\}`)

// parseMessage accepts a text in which what stands for the time to wait is written right.
func parseMessage(v Value) (any, error) {
	for _, word := range placeholder.FindAllString(v.Text, -1) {
		if word != retryAfter && nearest.Distance(strings.ToLower(word), retryAfter) <= 2 {
			return v.Text, fmt.Errorf("%s stays as it is: write %s for the time to wait", word, retryAfter)
		}
	}
	return printable(1000)(v)
}

// oneOf accepts one of some words.
func oneOf(choices ...string) func(Value) (any, error) {
	return func(v Value) (any, error) { return v.Text, checkChoice(v.Text, choices) }
}

func checkText(text string, most int) error {
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("the text is empty; leave the option out for its default")
	}
	if len(text) > most {
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
