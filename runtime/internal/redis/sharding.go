package redis

import "bytes"

// The keys that the check for sharding was told of.
const (
	noKeys        int32 = iota
	keysOfOneTag        // of a batch whose keys have one hash tag
	keysOfTwoTags       // of one whose keys have not
)

// tellSharding has the keys of a batch of several charges checked for sharding: two of the first
// batch that has several, and again two of the first one whose keys differ in their hash tags.
func (b *batcher) tellSharding(batch *batch) {
	told := b.shared.Load()
	if b.cfg.Sharding == nil || told == keysOfTwoTags {
		return
	}
	first, other := batch.differentKeys()
	if other == nil {
		return
	}
	keys := keysOfOneTag
	if !bytes.Equal(hashTag(first), hashTag(other)) {
		keys = keysOfTwoTags
	}
	if keys > told && b.shared.CompareAndSwap(told, keys) {
		b.cfg.Sharding.Begin(string(first), string(other))
	}
}

// differentKeys returns a key of the batch and another one, which has another
// hash tag if there is one such. It is nil if there is one key.
func (b *batch) differentKeys() (first, other []byte) {
	for _, g := range b.groups {
		for i := range g.calls {
			charges := g.calls[i].Charges
			for j := range charges {
				key := charges[j].Key
				switch {
				case first == nil:
					first = key
				case bytes.Equal(first, key):
				case !bytes.Equal(hashTag(first), hashTag(key)):
					return first, key
				case other == nil:
					other = key
				}
			}
		}
	}
	return first, other
}
