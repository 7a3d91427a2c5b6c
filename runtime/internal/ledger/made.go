package ledger

import (
	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/rule"
)

// A Made is what a call was charged for one of its limits.
type Made struct {
	// Cost is what was asked for, and Charged how much of it was charged.
	Cost, Charged int64
	// At and Mark are when, by the store. At is 0 if nothing was.
	At, Mark int64
	// Local says that this process alone has charged it.
	Local bool
	// Left says that the call has left a queue before its turn.
	Left bool
}

// An Item is one limit of a decision, and what was charged to it. The items of a decision are
// linked, and no slice, so that decisions can be compared.
type Item struct {
	Made
	Rule    *rule.Rule
	Max     int64
	Period  *calendar.Period
	Parts   []byte
	Tenant  []byte // whose share was charged, at a weight; 0: the limit is not divided
	Weight  uint32
	Invalid error // why the key could not be built, or nil
	Next    *Item // of the decision
}

// The items and bytes of keys that a shelf gets from the heap at a time.
const (
	shelfItems = 64
	shelfParts = 2048
)

// A Shelf has the items, and their keys, of many decisions in one piece of memory. It lives
// as long as any of them. The zero Shelf is ready for use, by one goroutine at a time.
type Shelf struct {
	items []Item
	parts []byte
}

// Items returns so many new items, which are linked.
func (s *Shelf) Items(n int) []Item {
	if len(s.items)+n > cap(s.items) {
		s.items = make([]Item, 0, max(shelfItems, n))
	}
	start := len(s.items)
	s.items = s.items[:start+n]
	items := s.items[start : start+n : start+n]
	for i := range items[1:] {
		items[i].Next = &items[i+1]
	}
	return items
}

// Parts returns a copy of the parts of a key.
func (s *Shelf) Parts(parts []byte) []byte {
	if len(s.parts)+len(parts) > cap(s.parts) {
		s.parts = make([]byte, 0, max(shelfParts, len(parts)))
	}
	start := len(s.parts)
	s.parts = append(s.parts, parts...)
	return s.parts[start:len(s.parts):len(s.parts)]
}
