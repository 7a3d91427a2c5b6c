package findings

import (
	"iter"
	"sync"
	"sync/atomic"
)

// Most is how many keys a [Map] holds at most. Values are small, and no program declares more
// rules than that.
const Most = 10_000

// A Map keeps a value for each of up to [Most] keys, which are rules, or what else a program
// declares: one that makes new ones all the time does not fill its memory. No value is removed. It is
// safe for concurrent use. The zero Map is empty.
type Map[K comparable, V any] struct {
	values sync.Map // K -> *V
	count  atomic.Int64
}

// Find returns the value of a key, or nil.
func (m *Map[K, V]) Find(key K) *V {
	if m.count.Load() == 0 {
		return nil
	}
	found, _ := m.values.Load(key)
	value, _ := found.(*V)
	return value
}

// Keep keeps a value for a key that has none yet, unless there are too many keys, and
// reports whether it did.
func (m *Map[K, V]) Keep(key K, value *V) bool {
	if m.count.Load() >= Most {
		return false
	}
	_, known := m.values.LoadOrStore(key, value)
	if !known {
		m.count.Add(1)
	}
	return !known
}

// Made returns the value of a key, which is a new one if there was none; or nil if there
// are too many keys.
func (m *Map[K, V]) Made(key K) *V {
	found := m.Find(key)
	if found == nil {
		m.Keep(key, new(V))
		found = m.Find(key)
	}
	return found
}

func (m *Map[K, V]) Len() int { return int(m.count.Load()) }

// All returns every key with its value.
func (m *Map[K, V]) All() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		m.values.Range(func(key, value any) bool { return yield(key.(K), value.(*V)) })
	}
}
