package raterecord

import (
	"crypto/sha256"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// maxKey is how much of a key a slot has. Keys have no more, unless the prefix of the rule is
// longer than that. A share stands behind the key, or the hash of one that does not fit there.
const maxKey = 200

// A slot is one limit of an event in the queue.
type slot struct {
	turn    atomic.Uint64 // see queue
	settles bool
	partial bool
	limits  uint8 // of the event, at its first one
	verdict observe.Verdict
	source  rule.Source
	keyLen  uint8
	share   uint8         // how many bytes behind the key are the name of its share
	at      time.Duration // since the recorder began
	rule    *runtime.Rule
	base    *runtime.Rule // as it was declared
	cost    int64
	max     int64
	charged int64
	waited  int64
	wait    int64
	settled int64
	weight  int64 // of the share, or 0: there is none
	anchor  int
	zone    string
	label   string
	key     [maxKey + sha256.Size]byte
}

// name fills in the key of a limit, and its share.
func (s *slot) name(key, share []byte, weight int64) {
	s.keyLen, s.share, s.weight = uint8(copy(s.key[:maxKey], key)), 0, weight
	if weight == 0 {
		return
	}
	if int(s.keyLen)+len(share) > len(s.key) {
		sum := sha256.Sum256(share)
		share = sum[:]
	}
	s.share = uint8(copy(s.key[s.keyLen:], share))
}

// A queue hands events to the writer. Nobody waits: where there is no room an event is dropped. A
// slot has the event of position p if its turn is p+1.
type queue struct {
	slots   []slot
	mask    uint64
	emptied atomic.Uint64 // head as it was lately
	dropped atomic.Uint64
	closed  atomic.Bool
	idle    atomic.Bool // the writer waits for the first event
	wake    chan struct{}
	_       [64]byte      // what stands above seldom changes
	tail    atomic.Uint64 // the next position to fill: callers write it all the time
	_       [64]byte
	head    uint64 // the next one to empty: the writer's
	asleep  bool   // likewise: no time to write is set
}

func newQueue(n int) *queue {
	size := uint64(1) << bits.Len(uint(max(n, 2*rule.MaxLimits)-1))
	return &queue{slots: make([]slot, size), mask: size - 1, wake: make(chan struct{}, 1)}
}

func (q *queue) at(position uint64) *slot { return &q.slots[position&q.mask] }

// claim returns the first of n positions that follow each other, or false if there is no room.
func (q *queue) claim(n int) (position uint64, ok bool) {
	for !q.closed.Load() {
		position = q.tail.Load()
		next := position + uint64(n)
		if next > q.emptied.Load()+uint64(len(q.slots)) {
			q.dropped.Add(1)
			q.signal()
			return 0, false
		}
		if q.tail.CompareAndSwap(position, next) {
			return position, true
		}
	}
	return 0, false
}

// publish hands a slot to the writer.
func (q *queue) publish(position uint64) {
	q.at(position).turn.Store(position + 1)
	// The first event wakes the writer up, and then each that fills half of the queue.
	if position&(q.mask>>1) == 0 || q.idle.Load() && q.idle.CompareAndSwap(true, false) {
		q.signal()
	}
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next returns the slot that is next to be written, or nil if there is none yet.
func (q *queue) next() *slot {
	if s := q.at(q.head); s.turn.Load() == q.head+1 {
		return s
	}
	return nil
}

// ready reports whether n slots are.
func (q *queue) ready(n int) bool {
	last := q.head + uint64(n) - 1
	for p := q.head; p <= last; p++ {
		if q.at(p).turn.Load() != p+1 {
			return false
		}
	}
	return true
}

// pass empties the slot that next has returned. Some later it is free, at the latest by free.
func (q *queue) pass() {
	s := q.at(q.head)
	s.rule, s.base, s.label, s.zone = nil, nil, "", ""
	q.head++
	if q.head&(q.mask>>3) == 0 {
		q.free()
	}
}

// free has all slots filled again that were passed.
func (q *queue) free() { q.emptied.Store(q.head) }

// sleep has the next event wake the writer up, and reports false if there is one.
func (q *queue) sleep() bool {
	q.asleep = true
	q.idle.Store(true)
	if q.tail.Load() != q.head && q.idle.CompareAndSwap(true, false) {
		q.asleep = false
	}
	return q.asleep
}

// woken reports whether the writer was asleep, which it is no more.
func (q *queue) woken() bool {
	was := q.asleep
	q.asleep = false
	return was
}

// close has the writer end, and reports false if it was closed before.
func (q *queue) close() bool {
	if q.closed.Swap(true) {
		return false
	}
	q.signal()
	return true
}
