package batch

import (
	"bytes"
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/slots"
	"github.com/rategen/rategen/runtime/rediswire"
)

// stepBack is by how much a server's clock steps back at least to be reported. Less is
// how clocks are kept right, and harms no limit that people set.
const stepBack = 100 * time.Millisecond

// watchClock learns the time at which the server has executed a script. If it is before
// the latest one that was known when the script was sent, the clock has stepped back, or
// another server has taken the place of this one.
func (b *Batcher) watchClock(known, now int64) {
	back := time.Duration(known-now) * time.Microsecond
	if now != 0 {
		b.learnTime(now)
	}
	switch latest := b.clock.Load(); {
	case now == 0:
	case known == 0 || back < stepBack:
		if now > latest {
			b.clock.CompareAndSwap(latest, now) // or else another batch knows better
		}
	case b.clock.CompareAndSwap(latest, now) && b.cfg.SteppedBack != nil:
		b.cfg.SteppedBack(b.Address(), back)
	}
}

// learnTime learns what the server's clock shows now. A reply has taken a while, so the
// server is ahead of what is learned by as much, and never behind it.
func (b *Batcher) learnTime(now int64) { b.ahead.Store(now - clock.Now().Microseconds()) }

// timeAt returns what the server's clock is expected to show at an instant, in microseconds
// since 1970: before its first reply, what that of the process does.
func (b *Batcher) timeAt(now time.Duration) int64 {
	if ahead := b.ahead.Load(); ahead != 0 {
		return ahead + now.Microseconds()
	}
	if b.cfg.Wall != nil {
		return b.cfg.Wall()
	}
	return time.Now().UnixMicro()
}

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

// warm makes connections ahead of need when Redis is far away, which a few slow
// batches in a row show: to make one takes several round trips, longer than a
// caller waits, and as many are needed as batches are sent while one is under
// way.
func (b *Batcher) warm(took time.Duration) {
	if took <= b.linger || b.about.Most == 0 {
		if b.slow.Load() != 0 {
			b.slow.Store(0)
		}
		return
	}
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
