package runtime_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// TestSameKeyAsOne holds calls with two limits of one key against calls with one limit, of the
// cost that both have and of the lower max: in random programs, every answer is the same.
func TestSameKeyAsOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			b := new(board)
			p := samePair(t, b)
			defer p.limiter.Close()
			for range rapid.IntRange(3, 25).Draw(t, "steps") {
				switch rapid.SampledFrom([]string{"take", "take", "settle", "reset", "override", "sleep"}).Draw(t, "do") {
				case "take":
					p.take(t)
				case "settle":
					p.settle(t)
				case "reset":
					for _, limit := range []runtime.Limit{p.first.Limit(nil), p.whole.Limit(nil)} {
						if err := p.limiter.Reset(t.Context(), limit); err != nil {
							t.Fatal(err)
						}
					}
				case "override":
					changed := rule.Override{Max: new(rapid.Int64Range(1, 10).Draw(t, "max"))}
					o := runtime.Overrides{Rules: map[string]rule.Override{"first": changed}}
					p.low[0] = *changed.Max
					if isBucket(p.first) { // drains by one max, whichever limit is settled
						o.Rules["second"], o.Rules["whole"], p.low[1] = changed, changed, *changed.Max
					}
					b.put(o)
				case "sleep":
					time.Sleep(time.Duration(rapid.IntRange(1, 40).Draw(t, "for")) * time.Second / 4)
				}
			}
		})
	})
}

// A pair is two limits of one key, and one limit that stands for both.
type pair struct {
	limiter              *runtime.Limiter
	first, second, whole *runtime.Rule
	low                  [2]int64 // the maxima of first and second in force
	open                 []paired // not settled
}

// paired is a call with two limits, and one with one.
type paired struct {
	two, one      runtime.Decision
	costs, shares [2]int64 // and which part of them both were charged
}

func samePair(t *rapid.T, b *board) *pair {
	r := runtime.Rule{
		Prefix: "same:", Window: 10 * time.Second, Max: rapid.Int64Range(1, 10).Draw(t, "first max"),
		Algorithm: rapid.SampledFrom(append(algorithms[:len(algorithms):len(algorithms)], runtime.Concurrency)).Draw(t, "algorithm"),
	}
	other := rapid.Bool().Draw(t, "otherwise")
	if other && r.Algorithm == runtime.FixedWindow {
		r.Reserve, r.Debt = 5*time.Second, rapid.SampledFrom([]rule.Debt{rule.DebtDefault, rule.DebtCarry}).Draw(t, "debt")
	} else if other && r.Algorithm != runtime.Concurrency {
		r.Block = 3 * time.Second
	}
	p := &pair{limiter: inMemory(runtime.WithOverrides(b, time.Second)), first: new(r), second: new(r), whole: new(r)}
	p.first.Name, p.second.Name, p.whole.Name, p.whole.Prefix = "first", "second", "whole", "whole:"
	if !isBucket(p.first) {
		p.second.Max = rapid.Int64Range(1, 10).Draw(t, "second max")
	}
	p.low = [2]int64{p.first.Max, p.second.Max}
	return p
}

// take makes a call with two limits, and one with the limit that stands for both.
func (p *pair) take(t *rapid.T) {
	c := paired{costs: [2]int64{rapid.Int64Range(1, 5).Draw(t, "cost"), rapid.Int64Range(1, 5).Draw(t, "second cost")}}
	low := min(p.low[0], p.low[1])
	both := max(c.costs[0], c.costs[1], min(c.costs[0]+c.costs[1], low))
	c.shares = [2]int64{min(c.costs[0], both), both - min(c.costs[0], both)}
	var errs [2]error
	c.two, errs[0] = p.limiter.Take(t.Context(), p.first.Limit(nil).WithCost(c.costs[0]), p.second.Limit(nil).WithCost(c.costs[1]))
	c.one, errs[1] = p.limiter.Take(t.Context(), p.whole.Limit(nil).WithCost(both).WithMax(low))
	two, one := c.two.String(), runtime.Decision{Rule: c.two.Rule, Allowed: c.one.Allowed, Source: c.one.Source, Blocked: c.one.Blocked,
		Limit: c.one.Limit, Remaining: c.one.Remaining, RetryAfter: c.one.RetryAfter, ResetAfter: c.one.ResetAfter}.String()
	if two != one || (errs[0] == nil) != (errs[1] == nil) {
		t.Fatalf("%d and %d: got %s, %v\nas one: %s, %v", c.costs[0], c.costs[1], two, errs[0], one, errs[1])
	}
	if errs[0] == nil {
		p.open = append(p.open, c)
	}
}

// settle settles a pair of calls at the same. A bucket is settled whole: what a part of a charge
// has drained is a part of what all of it has.
func (p *pair) settle(t *rapid.T) {
	if len(p.open) == 0 {
		return
	}
	i := rapid.IntRange(0, len(p.open)-1).Draw(t, "which")
	c := p.open[i]
	p.open = append(p.open[:i], p.open[i+1:]...)
	var costs [2]int64
	total, keeps := int64(0), true
	for i := range costs {
		if !isBucket(p.first) {
			costs[i] = rapid.Int64Range(-1, 7).Draw(t, "settled")
		}
		keeps = keeps && costs[i] < 0
		if costs[i] < 0 || costs[i] == c.costs[i] {
			total += c.shares[i]
		} else {
			total += costs[i]
		}
	}
	if keeps {
		total = -1
	}
	two, one := p.limiter.Settle(t.Context(), c.two, costs[0], costs[1]), p.limiter.Settle(t.Context(), c.one, total)
	if two != nil || one != nil {
		t.Fatalf("settle: %v, as one: %v", two, one)
	}
}
