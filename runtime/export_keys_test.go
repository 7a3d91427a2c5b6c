package runtime

import "strings"

// ParsePattern returns what a pattern means.
func ParsePattern(s string) (text string, prefix bool, err error) {
	p, err := parsePattern(s)
	return p.text, p.prefix, err
}

// A KeyTable finds patterns, by their places in a list.
type KeyTable struct{ t *keyTable }

// NewKeyTable returns a table of patterns without escapes.
func NewKeyTable(written []string) KeyTable {
	patterns, places := make([]pattern, len(written)), make([]uint32, len(written))
	for i, s := range written {
		patterns[i].text, patterns[i].prefix = strings.CutSuffix(s, "*")
		places[i] = uint32(i)
	}
	return KeyTable{newKeyTable(patterns, places)}
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
