package directive

import (
	"fmt"
	"go/token"
	"unicode"
	"unicode/utf8"
)

// defaultUsage is what the names of methods end in that tell what is left.
const defaultUsage = "Usage"

// Usage returns what the name of the method ends in that tells callers what is left, or ""
// if there is to be none.
func (s *Settings) Usage() string { return get[string](s, "usage") }

// parseUsage reads the ending of a method's name, for which on is the default.
func parseUsage(text string) (string, error) {
	if text == "on" {
		return defaultUsage, nil
	}
	if first, _ := utf8.DecodeRuneInString(text); !unicode.IsUpper(first) || !token.IsIdentifier(text) {
		return "", fmt.Errorf("%q is neither on nor what the name of a method can end in: write on, or an ending in upper case such as Left", text)
	}
	return text, nil
}

func explainUsage(s *Settings) string {
	if s.Usage() == "" {
		return ""
	}
	return "The wrapper has a method whose name ends in " + s.Usage() + ", which tells a caller what is left."
}
