package runtime

import "strings"

// ParsePattern returns what a pattern means.
func ParsePattern(s string) (text string, prefix bool, err error) {
	p, err := parsePattern(s)
	return p.text, p.prefix, err
}

// A KeyTable finds patterns, by their places in a list.
type KeyTable struct{ t *keyTable }

// NewKeyTable returns a table of patterns without escapes. Alike makes the hashes
// of most of them the same.
func NewKeyTable(written []string, alike bool) KeyTable {
	patterns := make([]pattern, len(written))
	for i, s := range written {
		patterns[i].text, patterns[i].prefix = strings.CutSuffix(s, "*")
	}
	return KeyTable{newKeyTable(patterns, func(i int) uint32 { return uint32(i) }, func(shortest int) keyHash {
		h := newKeyHash(shortest)
		if alike {
			h.step, h.last = 0, 0
		}
		return h
	})}
}

// Find returns the pattern for a key, or -1.
func (t KeyTable) Find(key string) int { return placeOf(t.t.find([]byte(key))) }

// FindBytes is Find for a benchmark.
func (t KeyTable) FindBytes(key []byte) bool {
	_, found := t.t.find(key)
	return found
}

// Get returns a pattern's place, or -1.
func (t KeyTable) Get(written string) int {
	text, prefix := strings.CutSuffix(written, "*")
	return placeOf(t.t.get(pattern{text, prefix}))
}

// Name returns the pattern at a place.
func (t KeyTable) Name(i int) string { return t.t.pattern(uint32(i)) }

func placeOf(value uint32, found bool) int {
	if !found {
		return -1
	}
	return int(value)
}
