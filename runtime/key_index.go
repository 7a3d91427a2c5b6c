package runtime

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// keySecrets make the hashes of keys unforeseeable: nobody can choose keys whose
// hashes are alike. The first are for the words of eight bytes that a key has.
var keySecrets = func() (secrets [maxPattern/8 + 3]uint64) {
	for i := range secrets {
		secrets[i] = rand.Uint64() | 1
	}
	return secrets
}()

const (
	secretStep = maxPattern/8 + 1 + iota
	secretLast
)

// A keyWords are the bytes of a key by eights.
type keyWords struct {
	key  []byte
	tail uint64 // the last bytes, up to seven
}

func wordsOf(key []byte) keyWords {
	w := keyWords{key: key}
	rest := len(key) & 7
	switch {
	case rest == 0:
	case len(key) >= 8:
		w.tail = binary.LittleEndian.Uint64(key[len(key)-8:]) >> (64 - 8*rest)
	default:
		for i := len(key) - 1; i >= 0; i-- {
			w.tail = w.tail<<8 | uint64(key[i])
		}
	}
	return w
}

// advance adds the words from one multiple of eight to another to a state. The
// products do not wait for each other, so the hashes of all beginnings of a key
// cost little more than its own. The product is that of wyhash,
// https://github.com/wangyi-fudan/wyhash.
func (w *keyWords) advance(state uint64, from, to int) uint64 {
	for ; from < to; from += 8 {
		state += mix(binary.LittleEndian.Uint64(w.key[from:])^keySecrets[from/8], keySecrets[secretStep])
	}
	return state
}

// sum returns the hash of the first length bytes, from the state before those
// that are not a multiple of eight.
func (w *keyWords) sum(state uint64, length int) uint64 {
	word := w.tail
	if i := length &^ 7; i+8 <= len(w.key) {
		word = binary.LittleEndian.Uint64(w.key[i:])
	}
	word &= 1<<(8*(length&7)) - 1
	return mix(state^keySecrets[secretLast], word^keySecrets[length/8]+uint64(length))
}

// hashOf returns the hash of a text of at most maxPattern bytes.
func hashOf(text []byte) uint64 {
	w := wordsOf(text)
	return w.sum(w.advance(0, 0, len(text)&^7), len(text))
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
