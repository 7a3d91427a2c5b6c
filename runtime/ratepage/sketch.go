package ratepage

import (
	"cmp"
	"container/heap"
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

const (
	// sketchShards and shardKeys bound how many keys are counted at a time, in
	// each of two spans.
	sketchShards = 8
	shardKeys    = 128
	// sketchSpan is for how long a span counts. What is shown are the denials of
	// the span that is under way and the one before.
	sketchSpan = 5 * time.Minute
)

// A sketch finds the keys that are denied most, in bounded memory. It is the
// algorithm Space-Saving (Metwally, Agrawal, El Abbadi, "Efficient computation of
// frequent and top-k elements in data streams", ICDT 2005): a key that has no
// counter takes the smallest one over, and its count may be too high by what that
// had. A key that is denied in more than 1 of 128 cases of its shard is found.
type sketch struct {
	seed   maphash.Seed
	shards [sketchShards]sketchShard
}

type sketchShard struct {
	mu      sync.Mutex
	name    []byte // of the key that is added, reused
	span    int64  // number of the current span
	current spaceSaving
	before  spaceSaving
}

func newSketch() *sketch { return &sketch{seed: maphash.MakeSeed()} }

// add counts a denial of a rule's key at a time.
func (s *sketch) add(rule string, key []byte, now time.Time) {
	shard := &s.shards[maphash.Bytes(s.seed, key)%sketchShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	shard.turn(now)
	// A rule's name may have any byte, a key has no control byte.
	shard.name = append(append(append(shard.name[:0], rule...), 0), key...)
	shard.current.add(shard.name, len(rule))
}

// turn begins another span if the time has come.
func (s *sketchShard) turn(now time.Time) {
	span := now.UnixNano() / int64(sketchSpan)
	if span == s.span {
		return
	}
	if span == s.span+1 {
		s.before = s.current
	} else {
		s.before = spaceSaving{}
	}
	s.current, s.span = spaceSaving{}, span
}

// A deniedKey is a key that was denied often.
type deniedKey struct {
	rule, key string
	count     uint64 // at most
	over      uint64 // by how much count may be too high
}

// top returns the n keys that were denied most.
func (s *sketch) top(n int, now time.Time) []deniedKey {
	var all []deniedKey
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		shard.turn(now)
		sums := make(map[string]deniedKey, len(shard.current.counters))
		for _, span := range []*spaceSaving{&shard.before, &shard.current} {
			for _, c := range span.counters {
				sum := sums[c.name]
				sums[c.name] = deniedKey{c.name[:c.cut], c.name[c.cut+1:], sum.count + c.count, sum.over + c.over}
			}
		}
		shard.mu.Unlock()
		for _, sum := range sums {
			all = append(all, sum)
		}
	}
	slices.SortFunc(all, func(a, b deniedKey) int {
		return cmp.Or(cmp.Compare(b.count-b.over, a.count-a.over), cmp.Compare(b.count, a.count), cmp.Compare(a.rule, b.rule), cmp.Compare(a.key, b.key))
	})
	return all[:min(n, len(all))]
}

// A spaceSaving has the counters of one span in one shard, as a heap with the
// smallest first.
type spaceSaving struct {
	counters []*counter
	byName   map[string]*counter
}

type counter struct {
	name        string // the rule's name, a zero byte, and the key
	cut         int    // where the zero byte is
	count, over uint64
	at          int // in the heap
}

func (s *spaceSaving) add(name []byte, cut int) {
	if c := s.byName[string(name)]; c != nil {
		c.count++
		heap.Fix(s, c.at)
		return
	}
	if s.byName == nil {
		s.byName = make(map[string]*counter, shardKeys)
	}
	if len(s.counters) < shardKeys {
		c := &counter{name: string(name), cut: cut, count: 1}
		s.byName[c.name] = c
		heap.Push(s, c)
		return
	}
	least := s.counters[0]
	delete(s.byName, least.name)
	least.name, least.cut, least.over = string(name), cut, least.count
	least.count++
	s.byName[least.name] = least
	heap.Fix(s, 0)
}

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (s *spaceSaving) Len() int           { return len(s.counters) }
func (s *spaceSaving) Less(i, j int) bool { return s.counters[i].count < s.counters[j].count }
func (s *spaceSaving) Swap(i, j int) {
	c := s.counters
	c[i], c[j] = c[j], c[i]
	c[i].at, c[j].at = i, j
}
func (s *spaceSaving) Push(x any) {
	c := x.(*counter)
	c.at = len(s.counters)
	s.counters = append(s.counters, c)
}
func (s *spaceSaving) Pop() any { panic("nothing is taken off the heap") }
