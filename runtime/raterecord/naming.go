package raterecord

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"

	"github.com/rategen/rategen/internal/record"
)

// maxNamed is how many names the writer remembers: about 16 MiB.
const maxNamed = 1 << 16

// A naming names callers by a secret.
type naming struct {
	mac   hash.Hash
	sum   []byte
	known map[string]record.Caller
	id    string // tells secrets apart

	seed, least uint64 // for which callers are chosen
}

func newNaming(secret []byte) *naming {
	n := &naming{mac: hmac.New(sha256.New, secret), known: map[string]record.Caller{}}
	id := n.hash([]byte("rategen record: which secret"), "")
	seed := n.hash([]byte("rategen record: which callers"), "")
	n.id, n.seed = hex.EncodeToString(id[:8]), binary.LittleEndian.Uint64(seed[:])
	return n
}

// hash returns the keyed hash of a text. Keys are told from other texts by a mark before them.
func (n *naming) hash(text []byte, mark string) (c record.Caller) {
	n.mac.Reset()
	_, _ = n.mac.Write([]byte(mark))
	_, _ = n.mac.Write(text)
	n.sum = n.mac.Sum(n.sum[:0])
	copy(c[:], n.sum)
	return c
}

// caller returns the name of the caller with a key. Only the writer calls it.
func (n *naming) caller(key []byte) record.Caller {
	if len(key) == 0 {
		return record.Everybody
	}
	if c, known := n.known[string(key)]; known {
		return c
	}
	if len(n.known) == maxNamed {
		clear(n.known)
	}
	c := n.hash(key, "key:")
	n.known[string(key)] = c
	return c
}

// choose has a share of the callers chosen.
func (n *naming) choose(share float64) {
	n.least = math.MaxUint64
	if share < 1 {
		n.least = uint64(share * (1 << 63) * 2)
	}
}

// chooses reports whether the caller with a key is recorded, by a hash that is quick.
func (n *naming) chooses(key []byte) bool {
	h := n.seed
	for len(key) >= 8 {
		h = mix(h ^ binary.LittleEndian.Uint64(key))
		key = key[8:]
	}
	var rest [8]byte
	copy(rest[:], key)
	h = mix(h ^ binary.LittleEndian.Uint64(rest[:]) ^ uint64(len(key))<<56)
	return h < n.least
}

// mix has each bit of a number depend on all.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
