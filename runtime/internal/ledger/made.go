package ledger

import (
	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/internal/terms"
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

// A Kept is what a decision keeps of a call, to settle it.
type Kept struct {
	// Made is what was charged for the Limit of a call with one. Its Local and Left are those of
	// every limit.
	Made
	Limit rule.Limit
	// Items are the limits of any other call, the first of them.
	Items *Item
	// Flag is the number of the decision's in Flags, which is nil if nothing was charged.
	Flag  uint16
	Flags *terms.Flags
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

// The items and bytes of keys that an arena gets from the heap at a time.
const (
	arenaItems = 64
	arenaParts = 2048
)

// An Arena has the items, and their keys, of many decisions in one piece of memory. It lives
// as long as any of them. The zero Arena is ready for use, by one goroutine at a time.
type Arena struct {
	items []Item
	parts []byte
}

// Items returns so many new items, which are linked.
func (a *Arena) Items(n int) []Item {
	if len(a.items)+n > cap(a.items) {
		a.items = make([]Item, 0, max(arenaItems, n))
	}
	start := len(a.items)
	a.items = a.items[:start+n]
	items := a.items[start : start+n : start+n]
	for i := range items[1:] {
		items[i].Next = &items[i+1]
	}
	return items
}

// Parts returns a copy of the parts of a key.
func (a *Arena) Parts(parts []byte) []byte {
	if len(a.parts)+len(parts) > cap(a.parts) {
		a.parts = make([]byte, 0, max(arenaParts, len(parts)))
	}
	start := len(a.parts)
	a.parts = append(a.parts, parts...)
	return a.parts[start:len(a.parts):len(a.parts)]
}
