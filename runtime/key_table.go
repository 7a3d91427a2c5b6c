package runtime

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// A keyTable finds the pattern that is in force for a key: the key itself, or else
// the longest prefix of it. It does not change once it is built. A lookup takes as
// many steps as the prefixes have different lengths.
type keyTable struct {
	whole    map[string]uint32
	prefixes []keyPrefixes // the longest first
	hashes   bool          // some keys are named by their hashes
}

// keyPrefixes are the prefixes of one length.
type keyPrefixes struct {
	length int
	values map[string]uint32
}

// newKeyTable returns a table of patterns that are all different, and their
// values.
func newKeyTable(patterns []pattern, values []uint32) *keyTable {
	t := &keyTable{whole: make(map[string]uint32)}
	byLength := make(map[int]map[string]uint32)
	for i, p := range patterns {
		of := t.whole
		t.hashes = t.hashes || strings.HasPrefix(p.text, hashed)
		if p.prefix {
			if of = byLength[len(p.text)]; of == nil {
				of = make(map[string]uint32)
				byLength[len(p.text)] = of
			}
		}
		of[p.text] = values[i]
	}
	for length, of := range byLength {
		t.prefixes = append(t.prefixes, keyPrefixes{length, of})
	}
	slices.SortFunc(t.prefixes, func(a, b keyPrefixes) int { return cmp.Compare(b.length, a.length) })
	return t
}

// find returns the value of the pattern that is in force for a key, and whether
// there is one.
func (t *keyTable) find(key []byte) (value uint32, found bool) {
	if value, found = t.whole[string(key)]; found {
		return value, true
	}
	if t.hashes {
		var text [len(hashed) + 2*sha256.Size]byte
		sum := sha256.Sum256(key)
		if value, found = t.whole[string(hex.AppendEncode(append(text[:0], hashed...), sum[:]))]; found {
			return value, true
		}
	}
	for i := range t.prefixes {
		p := &t.prefixes[i]
		if p.length > len(key) {
			continue
		}
		if value, found = p.values[string(key[:p.length])]; found {
			return value, true
		}
	}
	return 0, false
}

// get returns the value of a pattern, and whether it is in the table.
func (t *keyTable) get(p pattern) (value uint32, found bool) {
	of := t.whole
	if p.prefix {
		i, ok := slices.BinarySearchFunc(t.prefixes, len(p.text), func(p keyPrefixes, length int) int { return cmp.Compare(length, p.length) })
		if !ok {
			return 0, false
		}
		of = t.prefixes[i].values
	}
	value, found = of[p.text]
	return value, found
}

// pattern returns the least of the patterns with a value, as an operator writes
// them.
func (t *keyTable) pattern(value uint32) string {
	least, any := "", false
	look := func(of map[string]uint32, prefix bool) {
		for text, v := range of {
			if v != value {
				continue
			}
			if name := (pattern{text, prefix}).String(); !any || name < least {
				least, any = name, true
			}
		}
	}
	look(t.whole, false)
	for _, p := range t.prefixes {
		look(p.values, true)
	}
	return least
}
