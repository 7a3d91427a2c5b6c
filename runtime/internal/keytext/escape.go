// Package keytext is how callers are written in Redis keys, and how operators write
// them.
//
// It is handed the parts of one caller's key, or a text that an operator has written. It
// promises that different parts never give one text, that no part can look like a tag or
// a hash, and that a pattern which no key can match is an error. It never keeps what it
// is handed, except for the patterns in a [Table], and knows neither prefixes nor rules.
package keytext

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Hashed starts the hash that stands for parts which are too long. No part reads like
// this: a % is escaped.
const Hashed = "%sha256-"

// AppendHash appends what stands for parts that are too long.
func AppendHash(dst, parts []byte) []byte {
	sum := sha256.Sum256(parts)
	return hex.AppendEncode(append(dst, Hashed...), sum[:])
}

// IsHash reports whether a text is what AppendHash appends.
func IsHash(text string) bool {
	digits, is := strings.CutPrefix(text, Hashed)
	if !is {
		return false
	}
	sum, err := hex.DecodeString(digits)
	return err == nil && len(sum) == sha256.Size && strings.ToLower(digits) == digits
}

// invalid stands for a part that cannot be built. No part reads like this.
const invalid = "%invalid"

// isInvalid reports whether a part begins at a place of a text that cannot be built.
func isInvalid(s string, i int) bool {
	rest, is := strings.CutPrefix(s[i:], invalid)
	return is && (i == 0 || s[i-1] == ':') && (rest == "" || rest[0] == ':')
}

// Parse checks the text of a key as an operator writes it, and returns it as it is in
// Redis. %invalid stands for a part that cannot be built. %2A may stand for the byte *, and %XX
// for a byte above 0x7F, which JSON cannot always hold.
func Parse(s string) (string, error) {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		c := s[i]
		plain = c == ':' || c != '*' && longer[c] == 0
	}
	if plain {
		return s, nil
	}
	text := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '*':
			return "", fmt.Errorf("a * before the end: write %%2A for the byte, or end the pattern with the *")
		case c == '%' && isInvalid(s, i):
			text = append(text, invalid...)
			i += len(invalid) - 1
		case c == '%':
			b, ok := unhex(s[i+1:])
			if !ok {
				return "", fmt.Errorf("a %% without two of the digits 0 to 9 and A to F: write %%25 for the byte")
			}
			if b == '*' || b >= 0x80 {
				text = append(text, b)
			} else if longer[b] != 0 {
				text = append(text, s[i:i+3]...)
			} else {
				return "", fmt.Errorf("no key has the escape %s: write %c", s[i:i+3], b)
			}
			i += 2
		case c != ':' && longer[c] != 0:
			return "", fmt.Errorf("no key has the byte %q: write %%%02X", c, c)
		default:
			text = append(text, c)
		}
	}
	return string(text), nil
}

// maxText is the longest text in bytes that [ParseParts] reads.
const maxText = 4096

// ParseParts returns the parts that an operator has written as Parse reads them, but for a *,
// or as the hash that stands for them. The error is [ErrInvalid].
func ParseParts(text string) (Parts, error) {
	if len(text) > maxText {
		return Parts{}, fmt.Errorf("%w: a text of %d bytes, the most is %d", ErrInvalid, len(text), maxText)
	}
	if !IsHash(text) {
		var err error
		if text, err = Parse(strings.ReplaceAll(text, "*", "%2A")); err != nil {
			return Parts{}, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return ParsedParts(text), nil
}

func unhex(s string) (b byte, ok bool) {
	if len(s) < 2 {
		return 0, false
	}
	for _, c := range []byte(s[:2]) {
		if '0' <= c && c <= '9' {
			b = b<<4 | (c - '0')
		} else if 'A' <= c && c <= 'F' {
			b = b<<4 | (c - 'A' + 10)
		} else {
			return 0, false
		}
	}
	return b, true
}
