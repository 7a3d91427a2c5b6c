package keytext

import (
	"cmp"
	"crypto/sha256"
	"iter"
	"slices"
)

// A Table finds the pattern that is in force for a key: the key itself, or else
// the longest prefix of it. A lookup takes as many steps as the prefixes have
// different lengths. The zero value has no pattern.
type Table struct {
	whole    map[string]uint32
	prefixes []prefixes // the longest first
	hashes   bool       // some keys are named by their hashes
}

// prefixes are those of one length.
type prefixes struct {
	length int
	values map[string]uint32
}

// byLength compares the prefixes p with those of a length.
func byLength(p prefixes, length int) int { return cmp.Compare(length, p.length) }

// Add adds a pattern with a value, and reports false if it is in the table already.
func (t *Table) Add(p Pattern, value uint32) bool {
	if t.whole == nil {
		t.whole = make(map[string]uint32)
	}
	texts := t.whole
	if p.Prefix {
		i, found := slices.BinarySearchFunc(t.prefixes, len(p.Text), byLength)
		if !found {
			t.prefixes = slices.Insert(t.prefixes, i, prefixes{len(p.Text), make(map[string]uint32)})
		}
		texts = t.prefixes[i].values
	}
	if _, is := texts[p.Text]; is {
		return false
	}
	texts[p.Text] = value
	t.hashes = t.hashes || IsHash(p.Text)
	return true
}

// Find returns the value of the pattern that is in force for a key, and whether
// there is one.
func (t *Table) Find(key []byte) (value uint32, found bool) {
	if value, found = t.whole[string(key)]; found {
		return value, true
	}
	if t.hashes {
		var text [len(Hashed) + 2*sha256.Size]byte
		if value, found = t.whole[string(AppendHash(text[:0], key))]; found {
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

// Get returns the value of a pattern, and whether it is in the table.
func (t *Table) Get(p Pattern) (value uint32, found bool) {
	texts := t.whole
	if p.Prefix {
		i, ok := slices.BinarySearchFunc(t.prefixes, len(p.Text), byLength)
		if !ok {
			return 0, false
		}
		texts = t.prefixes[i].values
	}
	value, found = texts[p.Text]
	return value, found
}

// All returns the patterns with their values.
func (t *Table) All() iter.Seq2[Pattern, uint32] {
	return func(yield func(Pattern, uint32) bool) {
		for text, value := range t.whole {
			if !yield(Pattern{text, false}, value) {
				return
			}
		}
		for _, p := range t.prefixes {
			for text, value := range p.values {
				if !yield(Pattern{text, true}, value) {
					return
				}
			}
		}
	}
}

// Least returns the least of the patterns with a value, as an operator writes them.
func (t *Table) Least(value uint32) string {
	least, any := "", false
	for p, v := range t.All() {
		if name := p.String(); v == value && (!any || name < least) {
			least, any = name, true
		}
	}
	return least
}
