package batch

import (
	"bytes"

	"github.com/rategen/rategen/runtime/internal/slots"
)

// The keys of shared batches that the store was told of.
const (
	unshared   int32 = iota
	sharedTag        // one whose keys have one hash tag
	sharedKeys       // one whose keys have not
)

// tellShared tells the store two keys of the first batch that has several, and
// again two of the first one whose keys differ in their hash tags.
func (b *Batcher) tellShared(own *batch) {
	told := b.shared.Load()
	if b.cfg.Shared == nil || told == sharedKeys {
		return
	}
	first, other := own.differentKeys()
	if other == nil {
		return
	}
	now := sharedTag
	if !bytes.Equal(slots.HashTag(first), slots.HashTag(other)) {
		now = sharedKeys
	}
	if now > told && b.shared.CompareAndSwap(told, now) {
		b.cfg.Shared(string(first), string(other))
	}
}

// differentKeys returns a key of the batch and another one, which has another
// hash tag if there is one such. It is nil if there is one key.
func (b *batch) differentKeys() (first, other []byte) {
	var tag []byte
	for _, g := range b.groups {
		for i := range g.calls {
			charges := g.calls[i].Charges
			for j := range charges {
				key := charges[j].Key
				switch {
				case first == nil:
					first, tag = key, slots.HashTag(key)
				case !bytes.Equal(tag, slots.HashTag(key)):
					return first, key
				case other == nil && !bytes.Equal(first, key):
					other = key
				}
			}
		}
	}
	return first, other
}
