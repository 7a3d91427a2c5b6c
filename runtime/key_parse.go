package runtime

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// maxKeyText is the longest text in bytes that [ParseKey] reads.
const maxKeyText = 4096

// ParseKey is the inverse of [Key.String]: it returns the Key whose parts stand
// in the Redis key as text says, escaped and joined by colons. It is for tools
// with which an operator looks at the key of one caller. The empty text is the Key
// of a rule without a key option, and of an empty part.
//
// %2A and escapes of bytes above 0x7F are read as in the patterns of [Override].
// In place of parts that were too long for a Redis key, text may have what stands
// there: %sha256- and the hash. Any other text that no key has is [ErrInvalidKey],
// and so is one of more than 4,096 bytes.
func ParseKey(text string) (*Key, error) {
	if len(text) > maxKeyText {
		return nil, fmt.Errorf("%w: a text of %d bytes, the most is %d", ErrInvalidKey, len(text), maxKeyText)
	}
	key := NewKey()
	if sum, ok := strings.CutPrefix(text, hashed); ok && isHash(sum) {
		key.write([]byte(text))
		key.parts = 1
		return key, nil
	}
	parts, err := unescapeWide(strings.ReplaceAll(text, "*", "%2A"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidKey, err)
	}
	key.write([]byte(parts))
	key.parts = 1
	return key, nil
}

// isHash reports whether s is what appendKey writes after [hashed].
func isHash(s string) bool {
	sum, err := hex.DecodeString(s)
	return err == nil && len(sum) == 32 && strings.ToLower(s) == s
}
