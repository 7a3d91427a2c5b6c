package storetest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/lua"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// Ways returns a rule for every way of counting, with all that changes how it counts. All
// windows are the same, so that one range of steps in time is interesting for all.
func Ways() map[string]*runtime.Rule {
	const window = 100 * time.Millisecond
	ways := map[string]*runtime.Rule{
		"log zset":     {Window: window},
		"log packed":   {Window: window, Storage: runtime.StoragePacked},
		"zset slice":   {Window: window, Resolution: 7 * time.Millisecond},
		"packed slice": {Window: window, Resolution: 7 * time.Millisecond, Storage: runtime.StoragePacked},
		"equal":        {Window: window, Algorithm: runtime.SlidingCounter, Buckets: rule.EqualBuckets(7)},
		"layered":      {Window: window, Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(4, 5)},
		"one layer":    {Window: window, Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(1, 9)},
		"adaptive":     {Window: window, Algorithm: runtime.SlidingCounter, Buckets: rule.AdaptiveBuckets()},
		"fixed":        {Window: window, Algorithm: runtime.FixedWindow},
		"calendar":     {Period: rule.Day, Algorithm: runtime.FixedWindow},
		"keeps":        {Period: rule.Day, Algorithm: runtime.FixedWindow, Keep: 2},
		"keeps lent":   {Period: rule.Day, Algorithm: runtime.FixedWindow, Reserve: 30 * time.Millisecond, Debt: rule.DebtCarry, Keep: 3},
		"ledger":       {Period: rule.Day, Algorithm: runtime.FixedWindow, Ledger: rule.LedgerOn},
		"ledger lent":  {Period: rule.Day, Algorithm: runtime.FixedWindow, Reserve: 30 * time.Millisecond, Debt: rule.DebtCarry, Ledger: rule.LedgerOn},
		"token":        {Window: window, Algorithm: runtime.TokenBucket},
		"burst":        {Window: window, Algorithm: runtime.TokenBucket, Burst: 5},
		"leaky":        {Window: window - time.Microsecond, Algorithm: runtime.LeakyBucket, Burst: 17}, // drains by fractions
		"permits":      {Window: window, Algorithm: runtime.Concurrency},
		"reserved":     {Window: window, Algorithm: runtime.FixedWindow, Reserve: 30 * time.Millisecond},
		"reserved day": {Period: rule.Day, Algorithm: runtime.FixedWindow, Reserve: 30 * time.Millisecond, Debt: rule.DebtForgive},
		"carries":      {Window: window, Algorithm: runtime.FixedWindow, Debt: rule.DebtCarry},
		"carries day":  {Period: rule.Day, Algorithm: runtime.FixedWindow, Reserve: 30 * time.Millisecond, Debt: rule.DebtCarry},
		"queue":        {Window: window, Algorithm: runtime.LeakyBucket, Wait: 40 * time.Millisecond},
	}
	for a, name := range algorithm.Names { // one that is new has a rule of its own
		if !slices.ContainsFunc(slices.Collect(maps.Values(ways)), func(r *runtime.Rule) bool { return int(r.Algorithm) == a }) {
			ways[name] = &runtime.Rule{Window: window, Algorithm: runtime.Algorithm(a)}
		}
	}
	return ways
}

// WaysOf returns those of the Ways that can have a window, with a prefix of their own and
// without waiting. That with reservations can have no block.
func WaysOf(window time.Duration, max int64) map[string]*runtime.Rule {
	rules := Ways()
	for name, r := range rules {
		r.Name, r.Prefix = name, strings.ReplaceAll(name, " ", "_")+":"
		r.Window, r.Max, r.Burst, r.Wait = window, max, 0, 0
		if r.Reserve > 0 {
			r.Reserve = time.Hour // nothing lapses in a test
		}
		if name == "queue" || r.Period != rule.NoPeriod || r.Debt != rule.DebtDefault { // which has no such window
			delete(rules, name)
		}
	}
	return rules
}

// BlockingWaysOf returns those of WaysOf that may have a block.
func BlockingWaysOf(window time.Duration, max int64) map[string]*runtime.Rule {
	rules := WaysOf(window, max)
	maps.DeleteFunc(rules, func(_ string, r *runtime.Rule) bool { return isPermits(r) || r.Reserve > 0 })
	return rules
}

// Commands returns the commands that the scripts call.
func Commands() (names []string) {
	all := uint(lua.Several - 1)
	scripts := lua.Take(all|lua.Several) + lua.Take(all|lua.Settle) + lua.Take(all|lua.Renew) + lua.Take(all|lua.Several|lua.Block) + lua.Take(all|lua.Settle|lua.Block)
	for _, m := range regexp.MustCompile(`call\('([A-Z]+)'`).FindAllStringSubmatch(scripts, -1) {
		names = append(names, strings.ToLower(m[1]))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func isPermits(r *runtime.Rule) bool { return r.Algorithm == runtime.Concurrency }
