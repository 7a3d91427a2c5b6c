package batch

import (
	"bytes"
	"hash/maphash"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// An index finds the last call of a batch that takes from a key. Clearing it takes constant
// time.
type index struct {
	entries []indexEntry // a power of two of them
	round   uint32       // entries of other rounds are empty
	used    int
}

type indexEntry struct {
	charge *terms.Charge // whose key it is
	hash   uint64
	round  uint32
	call   int32 // its place in the group
}

// indexSize is enough for all charges of most batches.
const indexSize = 512

var indexSeed = maphash.MakeSeed()

func (x *index) clear() {
	if x.round++; x.round == 0 {
		clear(x.entries)
		x.round = 1
	}
	x.used = 0
}

// entry returns the entry of a charge's key, or the one to make for it, whose
// round is another; nil if the index is full, which does no harm.
func (x *index) entry(c *terms.Charge) *indexEntry {
	if x.entries == nil {
		x.entries = make([]indexEntry, indexSize)
	}
	hash := maphash.Bytes(indexSeed, c.Key)
	for i := hash % indexSize; ; i = (i + 1) % indexSize {
		e := &x.entries[i]
		if e.round != x.round {
			if x.used >= indexSize*3/4 {
				return nil
			}
			e.hash = hash
			return e
		}
		if e.hash == hash && bytes.Equal(e.charge.Key, c.Key) {
			return e
		}
	}
}

// holds reports whether the entry is of this round.
func (x *index) holds(e *indexEntry) bool { return e != nil && e.round == x.round }

// set notes that a call is the last one on the entry's key.
func (x *index) set(e *indexEntry, c *terms.Charge, call int) {
	if e == nil {
		return
	}
	if !x.holds(e) {
		e.round = x.round
		x.used++
	}
	e.charge, e.call = c, int32(call)
}
