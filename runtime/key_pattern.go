package runtime

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxPattern is the longest pattern in bytes. Looking a key up takes longer with
// longer patterns.
const maxPattern = 1024

// A pattern is one key, or all keys that start with a text. The text is that of
// a [Key]: escaped, and joined by colons.
type pattern struct {
	text   string
	prefix bool
}

// parsePattern reads a pattern as an operator writes it: the text of a key, and
// a * at the end for all keys that start so. %2A is the byte *, and a byte above
// 0x7F may be written as %XX too, for JSON cannot hold every one. What no key can
// be like is an error, since a misspelt pattern would let those through that it
// is to keep out.
func parsePattern(s string) (p pattern, err error) {
	if len(s) > maxPattern {
		return p, fmt.Errorf("a pattern of %d bytes, the most is %d", len(s), maxPattern)
	}
	if sum, is := strings.CutPrefix(s, hashed); is && isHash(sum) {
		return pattern{text: s}, nil
	}
	text, prefix := strings.CutSuffix(s, "*")
	if text, err = unescapeWide(text); err != nil {
		return p, err
	}
	return pattern{text: text, prefix: prefix}, nil
}

// unescapeWide checks the text of a key as an operator writes it, and returns it
// as it is in Redis: with the bytes for which the operator wrote escapes that a
// key does not have.
func unescapeWide(s string) (string, error) {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		c := s[i]
		plain = c == ':' || c != '*' && escapes[c] == 0
	}
	if plain {
		return s, nil
	}
	text := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '*':
			return "", fmt.Errorf("a * before the end: write %%2A for the byte, or end the pattern with the *")
		case c == '%':
			b, ok := unhex(s[i+1:])
			switch {
			case !ok:
				return "", fmt.Errorf("a %% without two of the digits 0 to 9 and A to F: write %%25 for the byte")
			case b == '*' || b >= 0x80:
				text = append(text, b)
			case escapes[b] != 0:
				text = append(text, s[i:i+3]...)
			default:
				return "", fmt.Errorf("no key has the escape %s: write %c", s[i:i+3], b)
			}
			i += 2
		case c != ':' && escapes[c] != 0:
			return "", fmt.Errorf("no key has the byte %q: write %%%02X", c, c)
		default:
			text = append(text, c)
		}
	}
	return string(text), nil
}

// String returns the pattern as an operator writes it.
func (p pattern) String() string {
	text := strings.ReplaceAll(p.text, "*", "%2A")
	if p.prefix {
		text += "*"
	}
	return text
}

// Pattern returns the pattern of [Override] that stands for the key alone, in
// text that JSON can hold.
func (k *Key) Pattern() string {
	text := pattern{text: k.String()}.String()
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

// unhex returns the byte that the first two digits of s are.
func unhex(s string) (b byte, ok bool) {
	if len(s) < 2 {
		return 0, false
	}
	for _, c := range []byte(s[:2]) {
		switch {
		case '0' <= c && c <= '9':
			b = b<<4 | (c - '0')
		case 'A' <= c && c <= 'F':
			b = b<<4 | (c - 'A' + 10)
		default:
			return 0, false
		}
	}
	return b, true
}
