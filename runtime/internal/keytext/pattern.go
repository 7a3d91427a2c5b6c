package keytext

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxPattern is the longest pattern in bytes. Looking a key up takes longer with
// longer patterns.
const MaxPattern = 1024

// A Pattern is one key, or all keys that start with a text. The text is as in Redis:
// escaped, and joined by colons.
type Pattern struct {
	Text   string
	Prefix bool
}

// ParsePattern reads a pattern as an operator writes it: the text of a key that [Parse]
// reads, and a * at the end for all keys that start so. What no key can be like is an
// error, since a misspelt pattern would let those through that it is to keep out.
func ParsePattern(s string) (Pattern, error) {
	if len(s) > MaxPattern {
		return Pattern{}, fmt.Errorf("a pattern of %d bytes, the most is %d", len(s), MaxPattern)
	}
	if IsHash(s) {
		return Pattern{Text: s}, nil
	}
	text, prefix := strings.CutSuffix(s, "*")
	text, err := Parse(text)
	if err != nil {
		return Pattern{}, err
	}
	return Pattern{text, prefix}, nil
}

// Parts returns how many parts the pattern has, or begins.
func (p Pattern) Parts() int {
	if p.Text == "" {
		return 0
	}
	return strings.Count(p.Text, ":") + 1
}

// String returns the pattern as an operator writes it.
func (p Pattern) String() string {
	text := strings.ReplaceAll(p.Text, "*", "%2A")
	if p.Prefix {
		text += "*"
	}
	return text
}

// JSON returns the pattern as an operator writes it, in text that JSON can hold: if
// it is not UTF-8, every byte above 0x7F is escaped.
func (p Pattern) JSON() string {
	text := p.String()
	if utf8.ValidString(text) {
		return text
	}
	var escaped strings.Builder
	for i := 0; i < len(text); i++ {
		if c := text[i]; c >= 0x80 {
			fmt.Fprintf(&escaped, "%%%02X", c)
		} else {
			escaped.WriteByte(c)
		}
	}
	return escaped.String()
}
