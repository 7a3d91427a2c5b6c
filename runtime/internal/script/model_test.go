package script_test

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/rule"
)

// blockRules holds a rule with a block for every way of counting that may have one:
// one that is shorter than the window, and one that is longer.
func blockRules() map[string]*runtime.Rule {
	rules := make(map[string]*runtime.Rule)
	for name, r := range storetest.Ways() {
		if r.Wait > 0 || r.Algorithm == runtime.Concurrency || r.Reserve > 0 || r.Debt != rule.DebtDefault {
			continue
		}
		short, long := *r, *r
		short.Block, long.Block = 30*time.Millisecond, 250*time.Millisecond
		rules[name+" short block"], rules[name+" long block"] = &short, &long
	}
	return rules
}

// TestModel drives random sequences of operations through the MemoryStore and through the
// scripts on a real Redis, at the same times, and wants the same answer to each in every field.
func TestModel(t *testing.T) {
	t.Parallel()
	rules := storetest.Ways()
	for name, r := range storetest.Ways() {
		if r.Algorithm != runtime.Concurrency && r.Reserve == 0 && r.Debt == rule.DebtDefault {
			forgives := *r
			forgives.Debt = rule.DebtForgive
			rules[name+" forgives"] = &forgives
		}
	}
	maps.Copy(rules, blockRules())
	for name, headroom := range map[string]int64{"quarter": -1, "headroom": 3} {
		divided := &runtime.Rule{Window: 100 * time.Millisecond, Algorithm: runtime.TokenBucket, Burst: 12, Headroom: headroom}
		rules["shares "+name] = divided
		forgives, blocks := *divided, *divided
		forgives.Debt, blocks.Block, blocks.Burst = rule.DebtForgive, 30*time.Millisecond, 0
		rules["shares "+name+" forgives"], rules["shares "+name+" block"] = &forgives, &blocks
	}
	testModel(t, rules, shortLogs)
}

// TestModelOfLongLogs is TestModel with logs of many events, which leave in
// pieces, and every cost up to the bound.
func TestModelOfLongLogs(t *testing.T) {
	t.Parallel()
	rules := storetest.Ways()
	maps.Copy(rules, blockRules())
	maps.DeleteFunc(rules, func(_ string, r *runtime.Rule) bool { return !stored(r) })
	testModel(t, rules, longLogs)
}

func testModel(t *testing.T, rules map[string]*runtime.Rule, load modelLoad) {
	free := databases(t)
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := free.borrow(t)
			rapid.Check(t, func(t *rapid.T) {
				if err := drive(t, db, rule, load); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// A modelLoad draws the numbers of calls.
type modelLoad struct {
	max  []int64
	cost func(most int64) *rapid.Generator[int64]
}

var shortLogs = modelLoad{
	max:  []int64{10, 10, 10, 3, 64},
	cost: func(most int64) *rapid.Generator[int64] { return rapid.Int64Range(1, min(most, 12)) },
}

var longLogs = modelLoad{
	max: []int64{400, 1000, 3000, 30_000},
	cost: func(most int64) *rapid.Generator[int64] {
		most = min(most, rule.MaxLogCost)
		return rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, most), rapid.Just(most))
	},
}
