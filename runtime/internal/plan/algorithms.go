package plan

import (
	"fmt"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Way is an algorithm as users name it.
type Way uint8

const (
	SlidingLog Way = iota
	SlidingCounter
	FixedWindow
	TokenBucket
	LeakyBucket
	Concurrency
	Ways // how many there are
)

// ways are the names of the algorithms, and how they count unless a rule says more.
var ways = [Ways]struct {
	name      string
	algorithm terms.Algorithm
}{
	SlidingLog:     {spec.SlidingLog, terms.LogZSet},
	SlidingCounter: {spec.SlidingCounter, terms.Counter},
	FixedWindow:    {spec.FixedWindow, terms.FixedWindow},
	TokenBucket:    {spec.TokenBucket, terms.TokenBucket},
	LeakyBucket:    {spec.LeakyBucket, terms.LeakyBucket},
	Concurrency:    {spec.Concurrency, terms.Permits},
}

// String returns the algorithm as the directive spells it.
func (w Way) String() string {
	if w < Ways {
		return ways[w].name
	}
	return fmt.Sprintf("Algorithm(%d)", uint8(w))
}

// A counting is what plans need to know of one way of counting. The scripts know the
// rest, see package lua, and the states in memory, see memstate.
type counting struct {
	// tag ends the Redis keys, so that a rule whose algorithm was changed never
	// meets the old state during a rolling deploy. See [terms.Label.AppendKey] for why a
	// caller cannot imitate it.
	tag string
	// max is the largest max.
	max int64
	// cost is the largest cost of one call: a store's work grows with it if every
	// event is stored.
	cost int64
}

// countings is the table of algorithms. To add one, add its constants here and
// in package terms, its row, its script and its state; what is missing fails
// when the program starts.
var countings = [terms.Algorithms]counting{
	terms.LogZSet:        {"", spec.MaxLog, spec.MaxLogCost},
	terms.LogPacked:      {"%packed", spec.MaxLog, spec.MaxLogCost},
	terms.Counter:        {"%counter", spec.MaxCount, spec.MaxCount},
	terms.LayeredCounter: {"%layered", spec.MaxCount, spec.MaxCount},
	terms.FixedWindow:    {"%window", spec.MaxAmount, spec.MaxAmount},
	terms.Calendar:       {"%calendar", spec.MaxAmount, spec.MaxAmount},
	terms.TokenBucket:    {"%token", spec.MaxCount, spec.MaxCount},
	terms.LeakyBucket:    {"%leaky", spec.MaxCount, spec.MaxCount},
	terms.Queue:          {"%queue", spec.MaxCount, spec.MaxCount},
	terms.Permits:        {"%permits", spec.MaxLog, spec.MaxLogCost},
	terms.Reserved:       {"%reserved", spec.MaxAmount, spec.MaxAmount},
	terms.ReservedPeriod: {"%reserved-period", spec.MaxAmount, spec.MaxAmount},
}

func init() {
	for a, row := range countings {
		if row.max == 0 || row.cost == 0 {
			panic(fmt.Sprintf("runtime: algorithm %d has no row in the table of algorithms", a))
		}
	}
	for w := range Ways {
		if w.String() == "" {
			panic(fmt.Sprintf("runtime: algorithm %d has no name", w))
		}
	}
}

// numbers returns what terms.Terms calls Param and More at a max.
func (r *Rule) numbers(max int64) (param, more int64) {
	switch a := r.Counted(); {
	case a == terms.LogZSet || a == terms.LogPacked:
		return r.Resolution.Microseconds(), 0
	case a == terms.Counter || a == terms.LayeredCounter:
		return r.width(), r.Fine
	case a == terms.Queue:
		return r.line(max), 0
	case a.Drains():
		burst := r.burst(max)
		if r.Lease > 0 {
			burst = r.leasedBurst(burst, max)
		}
		return burst, -1
	}
	return 0, 0
}

// width returns the width of the finest bucket, rounded up so that the buckets cover the
// window, and 0 for adaptive ones.
func (r *Rule) width() int64 {
	if r.Coarse == 0 {
		return 0
	}
	n := r.Coarse * max(r.Fine, 1)
	return (r.span().Microseconds() + n - 1) / n
}

// line returns the burst of a queue: max, and those whose turn comes within Wait.
func (r *Rule) line(max int64) int64 {
	if r.Burst > 0 {
		return r.Burst
	}
	waiting := float64(r.Wait.Microseconds()) * float64(max) / float64(r.Window.Microseconds())
	return int64(min(float64(spec.MaxCount), float64(max)+waiting))
}
