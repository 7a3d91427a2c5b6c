package plan

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Rule is what a rule says about counting.
type Rule struct {
	Way                                    Way
	Packed                                 bool // a log
	Window, Resolution, Wait, Block, Lease time.Duration
	Reserve                                time.Duration
	Debt                                   spec.Debt
	Coarse, Fine                           int64 // buckets; Fine 0: equal ones, Coarse 0: adaptive ones
	Burst                                  int64
	Hold, Shadow                           bool
	Period                                 *calendar.Period // or nil: Window says how long
	Keep                                   int64            // of how many periods counts are kept
}

// Counted returns how the rule is counted.
func (r *Rule) Counted() terms.Algorithm {
	switch {
	case r.reserved() && r.Period != nil:
		return terms.ReservedPeriod
	case r.reserved():
		return terms.Reserved
	case r.Period != nil:
		return terms.Calendar
	case r.Way == SlidingLog && r.Packed:
		return terms.LogPacked
	case r.Way == SlidingCounter && r.Fine > 0:
		return terms.LayeredCounter
	case r.Queues():
		return terms.Queue
	}
	return ways[r.Way].algorithm
}

// reserved reports whether a fixed window has reservations, or carries debts.
func (r *Rule) reserved() bool {
	return r.Way == FixedWindow && (r.Reserve > 0 || r.Debt == spec.DebtCarry)
}

// debt returns what becomes of what calls turn out to cost beyond max.
func (r *Rule) debt() terms.Debt {
	switch {
	case r.Debt == spec.DebtForgive:
		return terms.Forgives
	case r.Debt == spec.DebtCarry && r.Way == FixedWindow:
		return terms.Carries
	}
	return terms.Counts
}

// Queues reports whether the rule is a queue that calls leave evenly spaced.
func (r *Rule) Queues() bool { return r.Way == LeakyBucket && r.Wait > 0 }

func (r *Rule) row() *counting { return &countings[r.Counted()] }

// drains reports whether the rule has a burst.
func (r *Rule) drains() bool { return r.Way == TokenBucket || r.Way == LeakyBucket }

// Terms returns the terms of calls with a max, but for how long a call may wait in a queue.
func (r *Rule) Terms(max int64) (t terms.Terms) {
	t.Algorithm, t.Shadow, t.Window, t.Max = r.Counted(), r.Shadow, r.Window.Microseconds(), max
	t.Param, t.More = r.numbers(max)
	t.Block, t.Holds, t.Period = r.Block.Microseconds(), r.Hold, r.Period
	t.Reserve, t.Debt, t.Keep = r.Reserve.Microseconds(), r.debt(), uint8(r.Keep)
	if r.Lease > 0 {
		t.Window = r.span().Microseconds()
	}
	return t
}

// Present returns how long the time is that a max refers to: of a rule with a Period the
// present one, by the clock of this process, and then how much of that is left.
func (r *Rule) Present() (window, left time.Duration) {
	if r.Period == nil {
		return r.Window, 0
	}
	now := time.Now().UnixMicro()
	b := r.Period.At(now)
	return terms.Micros(b.End - b.Begin), terms.Micros(b.End - now)
}

// Capacity returns the largest cost that could ever be admitted at a max.
func (r *Rule) Capacity(max int64) int64 {
	if !r.drains() {
		return max
	}
	burst, _ := r.numbers(max)
	return burst
}

// MostCost returns the largest cost of one call, and how much more than it has reserved a
// call may owe.
func (r *Rule) MostCost() int64 { return r.row().cost }

// Scale returns a max above 0 times a factor: at least 1, no less than a cost if that
// could be admitted, and within the bounds of the rule's numbers.
func (r *Rule) Scale(limit, cost int64, factor float64) int64 {
	least := max(1, min(cost, limit))
	if burst := r.Capacity(0); burst > 0 { // bounds the cost, and drains within MaxDrain
		least = min(limit, int64(float64(burst)*float64(r.Window.Microseconds())/terms.MaxDrain)+1)
	}
	return max(least, int64(min(math.Round(float64(limit)*factor), float64(r.row().max))))
}

// Longest returns a time after which a key has no effect any more.
func (r *Rule) Longest(most int64) time.Duration {
	const century = 100 * 366 * 24 * time.Hour
	d := float64(2+r.Keep)*float64(r.Window) + float64(r.Block) + float64(r.Lease) + float64(r.Reserve)
	if r.debt() == terms.Carries {
		d += float64(r.Window)
	}
	if most > 0 {
		d += float64(r.Window) * float64(r.Capacity(most)) / float64(most)
	}
	return time.Duration(min(d, float64(century)))
}

// defaultPrefix starts the keys of rules that have no prefix.
const defaultPrefix = "rate_limit:"

// Start returns what the keys of a rule start with, which has a prefix or a name.
func Start(namespace, prefix, name string) string {
	if namespace != "" {
		namespace += ":"
	}
	if prefix != "" || name == "" {
		return namespace + prefix
	}
	return string(append(spec.AppendEscaped([]byte(namespace+defaultPrefix), name), ':'))
}

// BlockTag ends the tag of rules with a block. Their keys may hold one, which the
// scripts for other rules do not know.
const BlockTag = "%block"

// blockTags are the tags of all algorithms with it.
var blockTags = func() (tags [terms.Algorithms]string) {
	for a := range countings {
		tags[a] = countings[a].tag + BlockTag
	}
	return tags
}()

// Tag ends the Redis keys of the rule. The buckets of a layered counter line up only with
// those of the same layers and window, so its tag names both.
func (r *Rule) Tag() string {
	a, block := r.Counted(), r.Block > 0 || r.Hold
	if a == terms.LayeredCounter {
		tag := fmt.Sprintf("%s-%dx%d-%s", countings[a].tag, r.Coarse, r.Fine, strconv.FormatInt(r.span().Microseconds(), 10))
		if block {
			tag += BlockTag
		}
		return tag
	}
	if block {
		return blockTags[a]
	}
	return countings[a].tag
}

// A store that charges units at a time t lets a process admit calls by them
// before t+Lease. So a window that ends at s holds calls by units that were charged
// in (s-Window-Lease, s], and it is these that Max bounds.

// span returns for how long a store counts an event of the rule. A fixed window needs no
// more than its window, since no lease outlives that; a bucket has a lower burst instead.
func (r *Rule) span() time.Duration {
	if r.Way == SlidingLog || r.Way == SlidingCounter {
		return r.Window + r.Lease
	}
	return r.Window
}

// leasedBurst returns a bucket's burst without what drains in a lease at a max.
// Where nothing would be left the rule has no leases, and all of its burst.
func (r *Rule) leasedBurst(burst, max int64) int64 {
	if r.Window < spec.MinWindow || r.Lease >= r.Window {
		return burst // Check refuses it
	}
	// Rounded up. The quotient is below max, since a lease is shorter than its window.
	high, low := bits.Mul64(uint64(max), uint64(r.Lease.Microseconds()))
	drains, rest := bits.Div64(high, low, uint64(r.Window.Microseconds()))
	if rest > 0 {
		drains++
	}
	if int64(drains) >= burst {
		return burst
	}
	return burst - int64(drains)
}

// Leases reports whether the rule has leases at a max.
func (r *Rule) Leases(max int64) bool {
	if r.Lease == 0 || !r.drains() {
		return r.Lease != 0
	}
	burst := r.burst(max)
	return r.leasedBurst(burst, max) < burst
}

// burst returns the burst of a bucket without leases.
func (r *Rule) burst(max int64) int64 {
	if r.Burst > 0 {
		return r.Burst
	}
	return max
}

// CountsAs reports whether two rules count alike, whatever their max is, and whatever mode
// they are in.
func (r *Rule) CountsAs(o *Rule) bool {
	a, b := *r, *o
	a.Shadow, b.Shadow, a.Wait, b.Wait = false, false, 0, 0
	return a == b && r.Queues() == o.Queues()
}

// CheckSettled returns an error if a cost that was reserved cannot be settled at another.
func (r *Rule) CheckSettled(reserved, settled int64) error {
	most := r.MostCost()
	switch largest := max(most, spec.MaxCount); {
	case settled > largest:
		return fmt.Errorf("settled cost is above %d", largest)
	case settled-reserved > most:
		return fmt.Errorf("settled cost %d is more than %d above the %d that were reserved, the most that a call may owe to a %v: reserve more, or count with a %v or a %v",
			settled, most, reserved, r.Way, TokenBucket, SlidingCounter)
	}
	return nil
}
