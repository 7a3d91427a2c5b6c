package plan

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// Numbers are what a rule says about counting.
type Numbers struct {
	Rule *rule.Rule
	// Period is the rule's, or one that a call brings; nil: the Window says how long.
	Period *calendar.Period
}

// NumbersOf returns those of calls that bring no period of their own.
func NumbersOf(r *rule.Rule) Numbers {
	p, _ := rule.Engine.CalendarOf(r) // a rule without one is refused for that
	return Numbers{r, p}
}

// Counted returns how the rule is counted.
func (n Numbers) Counted() algorithm.Algorithm {
	var has algorithm.Need
	r := n.Rule
	if r.Storage == rule.StoragePacked {
		has |= algorithm.Packing
	}
	if _, fine := rule.Engine.Layers(r.Buckets); fine > 0 {
		has |= algorithm.Layers
	}
	if r.Wait > 0 {
		has |= algorithm.Wait
	}
	if r.Headroom != 0 {
		has |= algorithm.Share
	}
	if n.Period != nil {
		has |= algorithm.Period
	}
	if r.Reserve > 0 || r.Debt == rule.DebtCarry {
		has |= algorithm.Return
	}
	return algorithm.Choose(r.Algorithm, has)
}

// plain returns the row of the rule's algorithm, which has what holds whatever else the rule says.
func (n Numbers) plain() *algorithm.Row { return algorithm.RowOf(n.Rule.Algorithm) }

// debt returns what becomes of what calls turn out to cost beyond max, DebtDefault where it
// counts as every charge does.
func (n Numbers) debt() rule.Debt {
	if d := n.Rule.Debt; d == rule.DebtForgive || d == rule.DebtCarry && n.plain().Meets(algorithm.Return) {
		return d
	}
	return rule.DebtDefault
}

// kept returns of how many periods counts are kept.
func (n Numbers) kept() uint8 {
	if n.Rule.Ledger != rule.LedgerOff && n.Period != nil {
		return max(n.Rule.Keep, n.Period.Unit.KeptForLedger())
	}
	return n.Rule.Keep
}

// Queues reports whether the rule is a queue that calls leave evenly spaced.
func (n Numbers) Queues() bool { return n.Counted().Is(algorithm.Queues) }

// Leases reports whether the rule has leases at a max.
func (n Numbers) Leases(max int64) bool {
	r := n.Rule
	return r.Lease != 0 && (!n.drains() || rule.Engine.Capacity(r, max) < cmp.Or(r.Burst, max))
}

// Window returns the time that a max refers to, or for a period one that none is longer than.
func (n Numbers) Window() time.Duration {
	if n.Period != nil {
		return n.Period.Unit.Longest()
	}
	return n.Rule.Window
}

// Terms returns the terms of calls with a max, but for how long a call may wait in a queue.
func (n Numbers) Terms(max int64) (t terms.Terms) {
	r := n.Rule
	t.Algorithm, t.Shadow, t.Window, t.Max = n.Counted(), !r.Mode.Refuses(), n.Window().Microseconds(), max
	t.Param, t.More = n.params(max)
	t.Block, t.Holds, t.Period = r.Block.Microseconds(), r.Hold, n.Period
	t.Reserve, t.Debt, t.Keep = r.Reserve.Microseconds(), n.debt(), n.kept()
	t.Ledger = r.Ledger != rule.LedgerOff
	if r.Lease > 0 {
		t.Window = n.span().Microseconds()
	}
	return t
}

// Present returns how long the time is that a max refers to: of a rule with a Period the
// present one, by the clock of this process, and then how much of that is left.
func (n Numbers) Present() (window, left time.Duration) {
	if n.Period == nil {
		return n.Rule.Window, 0
	}
	now := time.Now().UnixMicro()
	b := n.Period.At(now)
	return terms.Micros(b.End - b.Begin), terms.Micros(b.End - now)
}

// Capacity returns the largest cost that could ever be admitted at a max.
func (n Numbers) Capacity(max int64) int64 {
	if !n.drains() {
		return max
	}
	return rule.Engine.Capacity(n.Rule, max)
}

func (n Numbers) drains() bool { return n.plain().Is(algorithm.Drains) }

// MostCost returns the largest cost of one call, and how much more than it has reserved a
// call may owe.
func (n Numbers) MostCost() int64 { return n.plain().MostCost }

// Scale returns a max above 0 times a factor: at least 1, no less than a cost if that
// could be admitted, and within the bounds of the rule's numbers.
func (n Numbers) Scale(limit, cost int64, factor float64) int64 {
	least := max(1, min(cost, limit))
	if burst := n.Capacity(0); burst > 0 { // bounds the cost, and drains within MaxDrain
		least = min(limit, int64(float64(burst)*float64(n.Rule.Window.Microseconds())/spec.MaxDrain)+1)
	}
	return max(least, int64(min(math.Round(float64(limit)*factor), float64(n.plain().Most))))
}

// Longest returns a time after which a key has no effect any more.
func (n Numbers) Longest(most int64) time.Duration {
	const century = 100 * 366 * 24 * time.Hour
	r, window := n.Rule, float64(n.Window())
	d := (2+float64(n.kept()))*window + float64(r.Block) + float64(r.Lease) + float64(r.Reserve)
	if n.debt() == rule.DebtCarry {
		d += window
	}
	if most > 0 {
		d += window * float64(n.Capacity(most)) / float64(most)
	}
	return time.Duration(min(d, float64(century)))
}

// Start returns what the keys of a rule start with, which has a prefix or a name.
func Start(namespace string, r *rule.Rule) string {
	if namespace != "" {
		namespace += ":"
	}
	return namespace + spec.Prefix(r.Prefix, r.Name)
}

// Tag ends the Redis keys of the rule. The buckets of a layered counter line up only with
// those of the same layers and window, so its tag names both.
func (n Numbers) Tag() string {
	row := n.Counted().Row()
	tag := row.Suffix
	if row.Need&algorithm.Layers != 0 {
		tag += fmt.Sprintf("-%v-%d", n.Rule.Buckets, n.span().Microseconds())
	}
	if n.Rule.Block > 0 || n.Rule.Hold {
		tag += BlockTag
	}
	return tag
}

// BlockTag ends the tag of rules with a block. Their keys may hold one, which the
// scripts for other rules do not know.
const BlockTag = "%block"

// A store that charges units at a time t lets a process admit calls by them
// before t+Lease. So a window that ends at s holds calls by units that were charged
// in (s-Window-Lease, s], and it is these that Max bounds.

// span returns for how long a store counts an event of the rule. A fixed window needs no
// more than its window, since no lease outlives that; a bucket has a lower burst instead.
func (n Numbers) span() time.Duration {
	if n.plain().Is(algorithm.Slides) {
		return n.Window() + n.Rule.Lease
	}
	return n.Window()
}

// CountsAs reports whether two rules count alike, whatever their max is, and whatever mode
// they are in.
func (n Numbers) CountsAs(o Numbers) bool {
	a, b := n.Rule, o.Rule
	return countingRule(a) == countingRule(b) && a.Buckets.String() == b.Buckets.String() && n.Period == o.Period &&
		n.Queues() == o.Queues()
}

// countingRule returns a rule without what does not say how it counts, or does so in more than one way.
func countingRule(r *rule.Rule) rule.Rule {
	c := *r
	c.Name, c.Source, c.Prefix, c.Message, c.Max, c.Wait = "", "", "", "", 0, 0
	c.Mode, c.Fail, c.Invalid, c.Outgoing, c.Adaptive = 0, 0, 0, false, nil
	c.Zone, c.Anchor, c.Buckets = "", 0, rule.Buckets{}
	return c
}

// CheckSettled returns an error if a cost that was reserved cannot be settled at another.
func (n Numbers) CheckSettled(reserved, settled int64) error {
	most := n.MostCost()
	largest := max(most, spec.MaxCount)
	if settled > largest {
		return fmt.Errorf("settled cost is above %d", largest)
	}
	if settled-reserved > most {
		return fmt.Errorf("settled cost %d is more than %d above the %d that were reserved, the most that a call may owe to a %v: reserve more, or count with a %v or a %v",
			settled, most, reserved, n.Rule.Algorithm, rule.TokenBucket, rule.SlidingCounter)
	}
	return nil
}

// CheckCost returns an error if a cost could be admitted at a max, but at the price of too
// much work for a store. A cost above max is no such error: it is refused before it comes to
// a store.
func (n Numbers) CheckCost(max, cost int64) error {
	most := n.MostCost()
	if cost <= most || cost > n.Capacity(max) {
		return nil
	}
	if n.plain().Is(algorithm.Lends) {
		return fmt.Errorf("cost %d is above %d, the most permits that one call may hold of a %v: count in larger units",
			cost, most, n.Rule.Algorithm)
	}
	return fmt.Errorf("cost %d is above %d, the most that one call may charge to a %v: count with a %v or a %v, or charge it in several calls",
		cost, most, n.Rule.Algorithm, rule.SlidingCounter, rule.TokenBucket)
}

// params returns what terms.Terms calls Param and More at a max.
func (n Numbers) params(max int64) (param, more int64) {
	row := n.Counted().Row()
	switch row.State {
	case algorithm.Log:
		return n.Rule.Resolution.Microseconds(), 0
	case algorithm.Count:
		return n.buckets()
	}
	if row.Is(algorithm.Queues) {
		return rule.Engine.Capacity(n.Rule, max), 0
	}
	if row.Is(algorithm.Divides) {
		burst := rule.Engine.Capacity(n.Rule, max)
		return burst, spec.Headroom(n.Rule.Headroom, burst, max)
	}
	if row.Is(algorithm.Drains) {
		return rule.Engine.Capacity(n.Rule, max), -1
	}
	return 0, 0
}

// buckets returns the width of the finest bucket, rounded up so that the buckets cover the
// window, and 0 for adaptive ones; and of how many fine ones a coarse one is.
func (n Numbers) buckets() (width, fine int64) {
	coarse, fine := rule.Engine.Layers(n.Rule.Buckets)
	if coarse == 0 {
		return 0, fine
	}
	each := coarse * max(fine, 1)
	return (n.span().Microseconds() + each - 1) / each, fine
}
