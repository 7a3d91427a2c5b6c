package callers

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
)

const (
	// shards and shardKeys bound how many keys are counted at a time.
	shards    = 8
	shardKeys = 128
)

// MaxKeys is how many keys a sketch counts at a time.
const MaxKeys = shards * shardKeys

// A Sketch finds the keys that are counted most among any number, with [MaxKeys] counters. It is the
// algorithm Space-Saving (Metwally, Agrawal, El Abbadi, "Efficient computation of
// frequent and top-k elements in data streams", ICDT 2005): a key that has no
// counter takes the smallest one over, and its count may be too high by what that
// had. A key that has more than 1 of 128 counts of its shard is found. A sketch is safe
// for concurrent use.
type Sketch struct{ shards [shards]shard }

type shard struct {
	mu       sync.Mutex
	name     []byte // of the key that is added, reused
	counters []*counter
	byName   map[string]*counter
}

type counter struct {
	name        string // the rule's name, a zero byte, and the key
	cut         int    // where the zero byte is
	most        int64  // as [Caller.Max]
	count, over uint64
}

func NewSketch() *Sketch { return new(Sketch) }

var seed = maphash.MakeSeed()

// Add counts n calls with a key of a rule, the last one with a max of its own or one below
// 0. It keeps no key that it is given.
func (s *Sketch) Add(rule string, key []byte, most int64, n uint64) {
	of := &s.shards[maphash.Bytes(seed, key)%shards]
	of.mu.Lock()
	defer of.mu.Unlock()
	// A rule's name may have any byte, a key has no control byte.
	of.name = append(append(append(of.name[:0], rule...), 0), key...)
	of.add(of.name, len(rule), most, n)
}

// All returns all keys that have a counter, in no order.
func (s *Sketch) All() (all []Caller) {
	for i := range s.shards {
		of := &s.shards[i]
		of.mu.Lock()
		for _, c := range of.counters {
			all = append(all, Caller{c.name[:c.cut], c.name[c.cut+1:], c.most, c.count, c.over})
		}
		of.mu.Unlock()
	}
	return all
}

func (s *shard) add(name []byte, cut int, most int64, n uint64) {
	c := s.byName[string(name)]
	if c == nil && len(s.counters) == shardKeys {
		c = slices.MinFunc(s.counters, func(a, b *counter) int { return cmp.Compare(a.count, b.count) })
		delete(s.byName, c.name)
		c.name, c.cut, c.over = string(name), cut, c.count
		s.byName[c.name] = c
	} else if c == nil {
		if s.byName == nil {
			s.byName = make(map[string]*counter)
		}
		c = &counter{name: string(name), cut: cut}
		s.byName[c.name] = c
		s.counters = append(s.counters, c)
	}
	c.most, c.count = most, c.count+n
}
