package runtime

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// newKeyTable returns a table of patterns that are all different, and their
// values. The hash is newKeyHash.
func newKeyTable(patterns []pattern, value func(i int) uint32, hash func(shortest int) keyHash) *keyTable {
	t := new(keyTable)
	whole, size := 0, 0
	var present [maxPattern + 1]bool
	for _, p := range patterns {
		size += entrySize + len(p.text)
		if p.prefix {
			present[len(p.text)] = true
		} else {
			whole++
			t.longest = max(t.longest, len(p.text))
		}
	}
	for length, is := range present {
		if is {
			t.lengths = append(t.lengths, uint16(length))
		}
	}
	shortest := 0
	if len(t.lengths) > 0 {
		shortest = int(t.lengths[0])
	}
	t.hash = hash(shortest)
	markers := t.markers(patterns)
	t.entries = make([]byte, 0, size+entrySize*len(markers))
	t.whole = newKeyIndex(whole)
	t.starts = newKeyIndex(len(patterns) - whole + len(markers))
	var starts []uint32 // entries of prefixes and markers
	places := make(map[string]uint32, len(markers))
	for i, p := range patterns {
		at := uint32(len(t.entries))
		if p.prefix {
			t.append(value(i), at+entrySize, len(p.text), isPrefix|hasValue)
			starts = append(starts, at)
			for length := range t.turns(len(p.text)) {
				if text := p.text[:length]; markers[text] {
					places[text] = at + entrySize
				}
			}
		} else {
			t.append(value(i), at+entrySize, len(p.text), hasValue)
			t.whole.add(maphash.String(t.hash.seed, p.text), at+1)
		}
		t.entries = append(t.entries, p.text...)
	}
	for text := range markers {
		starts = append(starts, uint32(len(t.entries)))
		t.append(0, places[text], len(text), isMarker)
	}
	t.connect(starts)
	return t
}

// append appends the numbers of an entry.
func (t *keyTable) append(value, text uint32, length int, kind byte) {
	e := binary.LittleEndian.AppendUint32(t.entries, value)
	e = binary.LittleEndian.AppendUint32(e, text)
	e = binary.LittleEndian.AppendUint16(e, uint16(length))
	t.entries = append(e, kind)
}

// connect puts prefixes and markers into the index, and gives the markers their
// values.
func (t *keyTable) connect(starts []uint32) {
	slices.SortStableFunc(starts, func(a, b uint32) int { return t.length(a) - t.length(b) })
	for _, at := range starts {
		text := t.text(at)
		e := t.entries[at:]
		if e[entryKind]&isMarker != 0 { // the shorter ones are in place
			if value, found := t.prefixOf(text[:len(text)-1]); found {
				binary.LittleEndian.PutUint32(e, value)
				e[entryKind] |= hasValue
			}
		}
		t.starts.add(t.hash.start(text), at+1)
	}
}

func (t *keyTable) length(at uint32) int {
	return int(binary.LittleEndian.Uint16(t.entries[at+entryLength:]))
}

func (t *keyTable) text(at uint32) []byte {
	from := binary.LittleEndian.Uint32(t.entries[at+entryText:])
	return t.entries[from:][:t.length(at)]
}

// markers returns the texts of the markers that are no prefixes themselves.
func (t *keyTable) markers(patterns []pattern) map[string]bool {
	markers := make(map[string]bool)
	if len(t.lengths) <= fan {
		return markers
	}
	for _, p := range patterns {
		if p.prefix {
			for length := range t.turns(len(p.text)) {
				markers[p.text[:length]] = true
			}
		}
	}
	for _, p := range patterns {
		if p.prefix {
			delete(markers, p.text)
		}
	}
	return markers
}

// turns returns the lengths at which the search for a prefix of a length turns
// to longer ones.
func (t *keyTable) turns(length int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for low, high := 0, len(t.lengths); low < high; {
			n, last := probes(low, high), -1
			for i := 0; i < n && int(t.lengths[probe(low, high, n, i)]) <= length; i++ {
				last = i
			}
			if last >= 0 {
				if turn := int(t.lengths[probe(low, high, n, last)]); turn == length || !yield(turn) {
					return
				}
			}
			low, high = narrow(low, high, n, last)
		}
	}
}

// pattern returns the least of the patterns with a value, as an operator writes
// them.
func (t *keyTable) pattern(value uint32) string {
	least, any := "", false
	for at := 0; at < len(t.entries); {
		e := t.entries[at:]
		kind := e[entryKind]
		text := t.text(uint32(at))
		if at += entrySize; kind&isMarker == 0 {
			at += len(text)
		}
		if kind&isMarker != 0 || binary.LittleEndian.Uint32(e) != value {
			continue
		}
		if name := (pattern{string(text), kind&isPrefix != 0}).String(); !any || name < least {
			least, any = name, true
		}
	}
	return least
}
