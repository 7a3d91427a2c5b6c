package batch

import (
	"bytes"
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/slots"
	"github.com/rategen/rategen/runtime/rediswire"
)

// The keys of shared batches that the store was told of.
const (
	unshared   int32 = iota
	sharedTag        // one whose keys have one hash tag
	sharedKeys       // one whose keys have not
)

// tellShared is called for a batch that has several charges. It tells the store two keys of the
// first one that has several, and again two of the first one whose keys differ in their hash
// tags.
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
	for _, g := range b.groups {
		for i := range g.calls {
			charges := g.calls[i].Charges
			for j := range charges {
				key := charges[j].Key
				switch {
				case first == nil:
					first = key
				case bytes.Equal(first, key):
				case !bytes.Equal(slots.HashTag(first), slots.HashTag(key)):
					return first, key
				case other == nil:
					other = key
				}
			}
		}
	}
	return first, other
}

// warm is called after a slow batch. It makes connections ahead of need when Redis is far away,
// which a few of them in a row show: to make one takes several round trips, longer than a
// caller waits, and as many are needed as batches are sent while one is under
// way.
func (b *Batcher) warm(took time.Duration) {
	if b.slow.Add(1) < farAfter {
		return
	}
	need := min(b.limit, baseInFlight+int(took/b.linger)+1)
	if b.Server.About().Connections >= need {
		return
	}
	now, last := int64(clock.Now()), b.warming.Load()
	if now-last < int64(time.Second) || !b.warming.CompareAndSwap(last, now) {
		return
	}
	for range need {
		go func() {
			defer func() { _ = recover() }() // a hook's, which the next batch reports
			ctx, cancel := context.WithTimeout(context.Background(), minBatchTime)
			defer cancel()
			b.Server.Do(ctx, []rediswire.Command{{Args: []string{"ping"}}})
		}()
	}
}
