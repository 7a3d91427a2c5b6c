package runtime

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
)

// A keyHash hashes keys, and their beginnings of several lengths: what all of them
// have in common is hashed once, and the rest eight bytes at a time, by the
// product of wyhash, https://github.com/wangyi-fudan/wyhash. The secrets are
// drawn for each table, so nobody can choose keys whose hashes are alike.
type keyHash struct {
	seed       maphash.Seed
	step, last uint64
	common     int // a multiple of eight that no beginning is shorter than
}

func newKeyHash(shortest int) keyHash {
	return keyHash{maphash.MakeSeed(), rand.Uint64(), rand.Uint64(), shortest &^ 7}
}

// A keyWords are the bytes of a key by eights.
type keyWords struct {
	key  []byte
	tail uint64 // the last bytes, up to seven
}

func wordsOf(key []byte) keyWords {
	w := keyWords{key: key}
	if rest := len(key) & 7; len(key) >= 8 {
		w.tail = binary.LittleEndian.Uint64(key[len(key)-8:]) >> (64 - 8*rest)
	} else {
		for i := len(key) - 1; i >= 0; i-- {
			w.tail = w.tail<<8 | uint64(key[i])
		}
	}
	return w
}

// at returns the eight bytes from a multiple of eight on, or the fewer that there
// are.
func (w *keyWords) at(i int) uint64 {
	if i+8 <= len(w.key) {
		return binary.LittleEndian.Uint64(w.key[i:])
	}
	return w.tail
}

// begin returns the hash of what is common to all beginnings of a key.
func (h *keyHash) begin(key []byte) uint64 { return maphash.Bytes(h.seed, key[:h.common]) }

// advance adds eight bytes to a hash.
func (h *keyHash) advance(state, word uint64) uint64 { return mix(state^word, h.step) }

// sum adds the last bytes of a beginning of a length, which are the first of word.
func (h *keyHash) sum(state, word uint64, length int) uint64 {
	return mix(state^h.last, h.step^word&(1<<(8*(length&7))-1)^uint64(length)<<56)
}

// start returns the hash of a text that is a beginning of keys.
func (h *keyHash) start(text []byte) uint64 {
	words, state, done := wordsOf(text), h.begin(text), h.common
	for ; done < len(text)&^7; done += 8 {
		state = h.advance(state, words.at(done))
	}
	return h.sum(state, words.at(done), len(text))
}

func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// A keyIndex is a hash table from hashes to references above 0. It has a filter
// that says quickly, and from little memory, that a hash is not in it.
type keyIndex struct {
	filter []uint64 // three bits for each hash, in one of the words
	slots  []keySlot
}

// A keySlot holds a reference, and the half of its hash that does not say where
// it is.
type keySlot struct{ tag, ref uint32 }

// newKeyIndex returns an index with room for n hashes.
func newKeyIndex(n int) keyIndex {
	words, slots := 1, 4
	for 4*words < n {
		words *= 2
	}
	for 3*slots < 4*n+4 {
		slots *= 2
	}
	return keyIndex{make([]uint64, words), make([]keySlot, slots)}
}

func (x *keyIndex) add(hash uint64, ref uint32) {
	x.filter[x.word(hash)] |= filterBits(hash)
	last := len(x.slots) - 1
	i := int(hash) & last
	for x.slots[i].ref != 0 {
		i = (i + 1) & last
	}
	x.slots[i] = keySlot{uint32(hash >> 32), ref}
}

func (x *keyIndex) word(hash uint64) int { return int(hash>>18) & (len(x.filter) - 1) }

func filterBits(hash uint64) uint64 {
	return 1<<(hash&63) | 1<<(hash>>6&63) | 1<<(hash>>12&63)
}

// mayHave reports false if a hash is not in the index.
func (x *keyIndex) mayHave(hash uint64) bool {
	b := filterBits(hash)
	return x.filter[x.word(hash)]&b == b
}

// after returns the next reference under a hash and its slot, from a slot on, or
// 0. It may be that of another hash, once in four billion.
func (x *keyIndex) after(hash uint64, slot int) (ref uint32, at int) {
	tag, last := uint32(hash>>32), len(x.slots)-1
	for i := slot & last; ; i = (i + 1) & last {
		if s := &x.slots[i]; s.ref == 0 || s.tag == tag {
			return s.ref, i
		}
	}
}
