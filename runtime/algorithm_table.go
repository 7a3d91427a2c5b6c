package runtime

import (
	"fmt"
	"strconv"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// A counting is what this package knows of one way of counting. The scripts know
// the rest, see package lua, and the states in memory, see memstate.
type counting struct {
	// tag ends the Redis keys, so that a rule whose algorithm was changed never
	// meets the old state during a rolling deploy. See appendKey for why a
	// caller cannot imitate it.
	tag string
	// max is the largest max and burst.
	max int64
	// cost is the largest cost of one call: a store's work grows with it if every
	// event is stored.
	cost int64
	// numbers returns what terms.Terms calls Param and More for a rule with max
	// in place of its own.
	numbers func(r *Rule, max int64) (param, more int64)
}

// countings is the table of algorithms. To add one, add its constants here and
// in package terms, its row, its script and its state; what is missing fails
// when the program starts.
var countings = [terms.Algorithms]counting{
	terms.LogZSet:        {"", MaxLog, MaxLogCost, logNumbers},
	terms.LogPacked:      {"%packed", MaxLog, MaxLogCost, logNumbers},
	terms.Counter:        {"%counter", MaxCount, MaxCount, counterNumbers},
	terms.LayeredCounter: {"%layered", MaxCount, MaxCount, counterNumbers},
	terms.FixedWindow:    {"%window", MaxCount, MaxCount, func(*Rule, int64) (int64, int64) { return 0, 0 }},
	terms.TokenBucket:    {"%token", MaxCount, MaxCount, bucketNumbers},
	terms.LeakyBucket:    {"%leaky", MaxCount, MaxCount, bucketNumbers},
	terms.Queue:          {"%queue", MaxCount, MaxCount, queueNumbers},
	terms.Permits:        {"%permits", MaxLog, MaxLogCost, func(*Rule, int64) (int64, int64) { return 0, 0 }},
}

func init() {
	for i, row := range countings {
		if row.max == 0 || row.cost == 0 || row.numbers == nil {
			panic(fmt.Sprintf("runtime: algorithm %d has no row in the table of algorithms", i))
		}
	}
	for a := range algorithms {
		_ = (&Rule{Algorithm: a}).counted() // panics for one without a row
		if a.String() == unknownAlgorithm(a) {
			panic("runtime: " + a.String() + " has no name")
		}
	}
}

// counted returns how the rule is counted.
func (r *Rule) counted() terms.Algorithm {
	switch r.Algorithm {
	case SlidingLog:
		if r.Storage == StoragePacked {
			return terms.LogPacked
		}
		return terms.LogZSet
	case SlidingCounter:
		if r.Buckets.fine > 0 {
			return terms.LayeredCounter
		}
		return terms.Counter
	case FixedWindow:
		return terms.FixedWindow
	case TokenBucket:
		return terms.TokenBucket
	case LeakyBucket:
		if r.Wait > 0 {
			return terms.Queue
		}
		return terms.LeakyBucket
	case Concurrency:
		return terms.Permits
	}
	panic("runtime: " + r.Algorithm.String() + " is in no row of the table of algorithms") // check refuses it
}

// setTerms sets the rule's terms with max in place of its own, but for how long a call
// may wait in a queue.
func (r *Rule) setTerms(t *terms.Terms, max int64) {
	a := r.counted()
	param, more := countings[a].numbers(r, max)
	t.Algorithm, t.Shadow, t.Window, t.Max, t.Param, t.More = a, !r.Mode.Denies(), r.Window.Microseconds(), max, param, more
	t.Block, t.Holds = r.Block.Microseconds(), r.Hold
	if r.Lease > 0 {
		t.Window = r.span().Microseconds()
	}
}

func logNumbers(r *Rule, _ int64) (int64, int64) { return r.Resolution.Microseconds(), 0 }

func counterNumbers(r *Rule, _ int64) (int64, int64) {
	return r.Buckets.width(r.span()), int64(r.Buckets.fine)
}

func bucketNumbers(r *Rule, max int64) (int64, int64) {
	burst := max
	if r.Burst > 0 {
		burst = r.Burst
	}
	if r.Lease > 0 {
		burst = r.leasedBurst(burst, max)
	}
	return burst, -1
}

// queueNumbers returns a burst of max and of those whose turn comes within the
// rule's Wait.
func queueNumbers(r *Rule, max int64) (int64, int64) {
	if r.Burst > 0 {
		return r.Burst, 0
	}
	waiting := float64(r.Wait.Microseconds()) * float64(max) / float64(r.Window.Microseconds())
	return int64(min(float64(MaxCount), float64(max)+waiting)), 0
}

// capacity returns the largest cost that the rule could ever admit, with max in
// place of its own.
func (r *Rule) capacity(max int64) int64 {
	if r.Algorithm != TokenBucket && r.Algorithm != LeakyBucket {
		return max
	}
	burst, _ := countings[r.counted()].numbers(r, max)
	return burst
}

// queues reports whether the rule is a queue that calls leave evenly spaced.
func (r *Rule) queues() bool { return r.Algorithm == LeakyBucket && r.Wait > 0 }

// blockTag ends the tag of rules with a block. Their keys may hold one, which the
// scripts for other rules do not know.
const blockTag = "%block"

// blockTags are the tags of all algorithms with it.
var blockTags = func() (tags [terms.Algorithms]string) {
	for a := range countings {
		tags[a] = countings[a].tag + blockTag
	}
	return tags
}()

// keyTag ends the Redis keys of the rule. The buckets of a layered counter line
// up only with those of the same layers and window, so its tag names both.
func (r *Rule) keyTag() string {
	a, block := r.counted(), r.Block > 0 || r.Hold
	if a == terms.LayeredCounter {
		tag := countings[a].tag + "-" + r.Buckets.String() + "-" + strconv.FormatInt(r.span().Microseconds(), 10)
		if block {
			tag += blockTag
		}
		return tag
	}
	if block {
		return blockTags[a]
	}
	return countings[a].tag
}
