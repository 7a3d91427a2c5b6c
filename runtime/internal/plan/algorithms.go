package plan

import (
	"fmt"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// storeAlgorithms says how algorithms are counted unless a rule says more.
var storeAlgorithms = [len(spec.Algorithms)]terms.Algorithm{
	rule.SlidingLog:     terms.LogZSet,
	rule.SlidingCounter: terms.Counter,
	rule.FixedWindow:    terms.FixedWindow,
	rule.TokenBucket:    terms.TokenBucket,
	rule.LeakyBucket:    terms.LeakyBucket,
	rule.Concurrency:    terms.Permits,
}

// tags end the Redis keys, so that a rule whose algorithm was changed never meets the old
// state during a rolling deploy. See [terms.Label.AppendKey] for why a caller cannot imitate
// them. To add an algorithm, add its constants in packages rule and terms, its rows here, its
// script in package lua and its state in package memstate. What is missing fails when the
// program starts.
var tags = [terms.Algorithms]string{
	terms.LogZSet:        "",
	terms.LogPacked:      "%packed",
	terms.Counter:        "%counter",
	terms.LayeredCounter: "%layered",
	terms.FixedWindow:    "%window",
	terms.Calendar:       "%calendar",
	terms.TokenBucket:    "%token",
	terms.LeakyBucket:    "%leaky",
	terms.Queue:          "%queue",
	terms.Permits:        "%permits",
	terms.Reserved:       "%reserved",
	terms.ReservedPeriod: "%reserved-period",
}

func init() {
	for a, tag := range tags {
		if (tag == "") != (terms.Algorithm(a) == terms.LogZSet) {
			panic(fmt.Sprintf("runtime: algorithm %d has no tag", a))
		}
	}
	for a, counted := range storeAlgorithms {
		if counted == terms.LogZSet && rule.Algorithm(a) != rule.SlidingLog {
			panic(fmt.Sprintf("runtime: no store counts by a %v", rule.Algorithm(a)))
		}
	}
}

// BlockTag ends the tag of rules with a block. Their keys may hold one, which the
// scripts for other rules do not know.
const BlockTag = "%block"

// blockTags are the tags of all algorithms with it.
var blockTags = func() (with [terms.Algorithms]string) {
	for a, tag := range tags {
		with[a] = tag + BlockTag
	}
	return with
}()

// params returns what terms.Terms calls Param and More at a max.
func (n Numbers) params(max int64) (param, more int64) {
	a := n.Counted()
	switch {
	case a == terms.LogZSet || a == terms.LogPacked:
		return n.Rule.Resolution.Microseconds(), 0
	case a == terms.Counter || a == terms.LayeredCounter:
		return n.buckets()
	case a == terms.Queue:
		return rule.Capacity(n.Rule, max), 0
	case a.Drains():
		return rule.Capacity(n.Rule, max), -1
	}
	return 0, 0
}

// buckets returns the width of the finest bucket, rounded up so that the buckets cover the
// window, and 0 for adaptive ones; and of how many fine ones a coarse one is.
func (n Numbers) buckets() (width, fine int64) {
	coarse, fine := rule.Layers(n.Rule.Buckets)
	if coarse == 0 {
		return 0, fine
	}
	each := coarse * max(fine, 1)
	return (n.span().Microseconds() + each - 1) / each, fine
}
