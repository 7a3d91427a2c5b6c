package runtime

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"slices"
)

// A keyTable finds the pattern that is in force for a key: the key itself, or
// else the longest prefix of it. It does not change once it is built.
//
// Both are found by their hashes. The distinct lengths of the prefixes are
// searched after Waldvogel, Varghese, Turner and Plattner, "Scalable High Speed
// IP Routing Lookups" (SIGCOMM 1997), but in rounds of up to seven lengths, since
// a processor looks up that many almost as quickly as one. Where the search for
// a prefix turns to longer lengths the table holds a marker: the beginning of
// that prefix, which knows the longest prefix that it starts with. A lookup so
// takes one round for seven lengths, two for 63 and three for 511.
type keyTable struct {
	hash    keyHash
	entries []byte   // what the indexes refer to
	whole   keyIndex // of the keys
	longest int      // of the keys
	starts  keyIndex // of the prefixes and markers
	lengths []uint16 // of the prefixes, ascending
}

// fan is how many lengths a round of the search looks at.
const fan = 7

// An entry is a key, a prefix or a marker. Its text follows the numbers, so that
// a lookup waits for memory once, or is a part of another entry if it is a marker.
const (
	entryValue  = 0  // uint32
	entryText   = 4  // uint32: where the text is
	entryLength = 8  // uint16: of the text
	entryKind   = 10 // byte
	entrySize   = 11
)

const (
	isPrefix = 1 << iota
	isMarker
	hasValue
)

// probes returns how many lengths of a range a round looks at.
func probes(low, high int) int { return min(high-low, fan) }

// probe returns the place of the ith length that a round with n lengths looks at.
func probe(low, high, n, i int) int {
	if high-low == n {
		return low + i
	}
	return low + (i+1)*(high-low)/(fan+1)
}

// narrow returns the range after a round in which the last length that was found
// is the ith, or -1.
func narrow(low, high, n, i int) (int, int) {
	from, to := low, high
	if i >= 0 {
		from = probe(low, high, n, i) + 1
	}
	if i+1 < n {
		to = probe(low, high, n, i+1)
	}
	return from, to
}

// find returns the value of the pattern that is in force for a key, and whether
// there is one.
func (t *keyTable) find(key []byte) (value uint32, found bool) {
	if len(key) <= t.longest {
		if value, found = t.wholeKey(key); found {
			return value, true
		}
	}
	return t.prefixOf(key)
}

// wholeKey returns the value of the pattern that is a key itself.
func (t *keyTable) wholeKey(key []byte) (value uint32, found bool) {
	hash := maphash.Bytes(t.hash.seed, key)
	if !t.whole.mayHave(hash) {
		return 0, false
	}
	for ref, slot := t.whole.after(hash, int(hash)); ref != 0; ref, slot = t.whole.after(hash, slot+1) {
		if e := t.entries[ref-1:]; t.is(ref-1, key) {
			return binary.LittleEndian.Uint32(e), true
		}
	}
	return 0, false
}

// prefixOf returns the value of the longest prefix of a key.
func (t *keyTable) prefixOf(key []byte) (value uint32, found bool) {
	if len(t.lengths) == 0 || len(key) < int(t.lengths[0]) {
		return 0, false
	}
	words, begun, last, length := wordsOf(key), t.hash.begin(key), uint32(0), 0
	for low, high := 0, len(t.lengths); low < high; {
		var hashes [fan + 1]uint64
		n, may := probes(low, high), uint(0)
		state, done := begun, t.hash.common
		for i := range n {
			length := int(t.lengths[probe(low, high, n, i)])
			if length > len(key) {
				break
			}
			for ; done < length&^7; done += 8 {
				state = t.hash.advance(state, words.at(done))
			}
			hash := t.hash.sum(state, words.at(done), length)
			hashes[i&fan] = hash
			if t.starts.mayHave(hash) {
				may |= 1 << i
			}
		}
		i := -1
		for ; may != 0; i = -1 {
			i = bits.Len(may) - 1
			if ref, _ := t.starts.after(hashes[i&fan], int(hashes[i&fan])); ref != 0 {
				last, length = ref, int(t.lengths[probe(low, high, n, i)])
				break
			}
			may &^= 1 << i
		}
		low, high = narrow(low, high, n, i)
	}
	if last == 0 {
		return 0, false
	}
	// If the last entry is that beginning of the key, so were those before it.
	if e := t.entries[last-1:]; t.is(last-1, key[:length]) {
		return binary.LittleEndian.Uint32(e), e[entryKind]&hasValue != 0
	}
	return t.slowPrefixOf(key)
}

// is reports whether an entry has a text.
func (t *keyTable) is(at uint32, text []byte) bool {
	return t.length(at) == len(text) && string(t.text(at)) == string(text)
}

// slowPrefixOf is prefixOf for a key that has misled it by two hashes alike.
func (t *keyTable) slowPrefixOf(key []byte) (value uint32, found bool) {
	for _, length := range slices.Backward(t.lengths) {
		if int(length) <= len(key) {
			if value, found = t.prefix(key[:length]); found {
				return value, true
			}
		}
	}
	return 0, false
}

// prefix returns the value of the pattern that is a prefix itself.
func (t *keyTable) prefix(text []byte) (value uint32, found bool) {
	if len(t.lengths) == 0 || len(text) < int(t.lengths[0]) {
		return 0, false
	}
	hash := t.hash.start(text)
	for ref, slot := t.starts.after(hash, int(hash)); ref != 0; ref, slot = t.starts.after(hash, slot+1) {
		if e := t.entries[ref-1:]; t.is(ref-1, text) {
			return binary.LittleEndian.Uint32(e), e[entryKind]&isPrefix != 0
		}
	}
	return 0, false
}

// get returns the value of a pattern, and whether it is in the table.
func (t *keyTable) get(p pattern) (value uint32, found bool) {
	if p.prefix {
		return t.prefix([]byte(p.text))
	}
	return t.wholeKey([]byte(p.text))
}
