package replay

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A Proposal is a max, and what it would have done.
type Proposal struct {
	Algorithm string  `json:"algorithm"`
	Share     float64 `json:"share"`
	Of        string  `json:"of"` // calls or callers
	Max       int64   `json:"max"`
	Refused   int64   `json:"refused_calls"`
	Hit       int     `json:"refused_callers"`
	AtMost    float64 `json:"callers_at_most"` // a share, by 95%
	Bytes     int64   `json:"redis_bytes"`
}

// shares are of how many calls and callers a max is proposed that refuses no more.
var shares = []float64{0, 0.001, 0.01}

// Proposals are what may be proposed for a rule.
type Proposals struct {
	All      []Proposal
	Outliers []*Side // whom the max for most calls refuses most
	Found    *Rule   // at the first max
	Last     *Result
}

// Propose finds the lowest max of a rule that refuses no more than each share, and with compare for other
// algorithms too. It replays the calls that the rule may depend on, and no others.
func (rs *Records) Propose(ctx context.Context, name string, plan *Plan, compare bool) (p Proposals, err error) {
	of, err := rs.Select(name)
	if err != nil {
		return p, err
	}
	s := &search{rule: name, records: of, change: plan, found: map[int64]*Rule{}}
	if p.All, p.Outliers, err = s.proposals(ctx); err != nil {
		return p, err
	}
	p.Found, p.Last = s.found[p.All[0].Max], s.last
	declared := p.Found.Changed().Algorithm
	lends := func(a runtime.Algorithm) bool { return algorithm.RowOf(a).Is(algorithm.Lends) }
	for a := runtime.SlidingLog; compare && int(a) < len(algorithm.Names); a++ {
		if a == declared || lends(a) || lends(declared) {
			continue
		}
		with := &search{rule: name, records: of, change: plan, found: map[int64]*Rule{}, algorithm: &a}
		others, _, err := with.proposals(ctx)
		if err == nil {
			p.All = append(p.All, others...)
		} else if ctx.Err() != nil {
			return p, err
		} else {
			p.Last.Notes = append(p.Last.Notes, fmt.Sprintf("Not for %v: %v.", a, err))
		}
	}
	return p, nil
}

// A search is for a max.
type search struct {
	rule    string
	records *Records
	change  *Plan
	found   map[int64]*Rule
	last    *Result

	algorithm *runtime.Algorithm // nil: the one of the rule
}

// proposals returns the lowest max for each share, and whom the one for most calls refuses most.
func (s *search) proposals(ctx context.Context) (all []Proposal, outliers []*Side, err error) {
	all, err = EachShare(func(share float64, of string) (Proposal, error) {
		p, sides, err := s.lowest(ctx, share, of)
		if of == "calls" {
			outliers = sides
		}
		return p, err
	})
	return all, outliers, err
}

// at replays with a max.
func (s *search) at(ctx context.Context, max int64) (*Rule, error) {
	if of := s.found[max]; of != nil {
		return of, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	made := map[*runtime.Rule]*runtime.Rule{}
	result, err := s.records.Run(func(state record.RuleState, own int64) (*runtime.Rule, int64, bool) {
		r, now, on := s.change.Change(state, own)
		if state.Declared.Name != s.rule || !on {
			return r, now, on
		}
		if made[r] == nil {
			with := *r
			with.Max, with.Mode = max, runtime.ModeEnforce
			if s.algorithm != nil {
				CountBy(&with, *s.algorithm)
			}
			rule.Engine.FitHeadroom(&with)
			made[r] = &with
		}
		return made[r], max, true
	})
	if err != nil {
		return nil, err
	}
	s.last = result
	i := slices.IndexFunc(result.Rules, func(of *Rule) bool { return of.Name == s.rule })
	if i < 0 || result.Rules[i].Changed() == nil {
		return nil, fmt.Errorf("%s refuses nobody after the changes: they remove it", s.rule)
	}
	s.found[max] = result.Rules[i]
	return s.found[max], nil
}

// lowest returns the lowest max that refuses at most a share of the calls or callers.
func (s *search) lowest(ctx context.Context, share float64, of string) (Proposal, []*Side, error) {
	fits := func(max int64) (bool, error) {
		r, err := s.at(ctx, max)
		if err != nil {
			return false, err
		}
		refused, all := r.After.Refused, r.Calls
		if of == "callers" {
			refused, all = int64(r.HitNow), int64(r.Callers)
		}
		return Ratio(refused, all) <= share, nil
	}
	high, err := lowestMax(fits)
	if err != nil {
		return Proposal{}, nil, err
	}
	best := s.found[high]
	return Proposal{best.Changed().Algorithm.String(), share, of, high, best.After.Refused, best.HitNow, atMost(best.HitNow, best.Callers), holds(best, high)}, best.Sides, nil
}

// lowestMax returns the lowest max that fits. Each one above it fits, too.
func lowestMax(fits func(int64) (bool, error)) (int64, error) {
	low, high := int64(0), int64(1)
	for {
		ok, err := fits(high)
		if err != nil {
			return 0, err
		}
		if ok {
			break
		}
		low, high = high, 2*high
	}
	for high-low > 1 {
		middle := low + (high-low)/2
		ok, err := fits(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	return high, nil
}

// EachShare returns a proposal for each share of the calls, and then of the callers.
func EachShare(propose func(share float64, of string) (Proposal, error)) (all []Proposal, err error) {
	for _, of := range []string{"calls", "callers"} {
		for _, share := range shares {
			p, err := propose(share, of)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// atMost returns the share of all callers that is hit, by 95 %, if of some callers so many were.
func atMost(hit, of int) float64 {
	if of == 0 {
		return 1
	}
	if hit == 0 { // the rule of three
		return min(1, 3/float64(of))
	}
	return min(1, (float64(hit)+1.92+1.96*math.Sqrt(float64(hit)+0.96))/float64(of))
}

// holds estimates how much Redis would hold.
func holds(of *Rule, max int64) (bytes int64) {
	for _, n := range of.Peaks {
		bytes += KeyBytes(of.Changed(), min(n, max))
	}
	return bytes
}

// LowestOf returns the lowest max for callers that each ask for so much in a window, in ascending order.
func LowestOf(demands []int64, share float64, of string, r *runtime.Rule) (Proposal, error) {
	p := Proposal{Algorithm: r.Algorithm.String(), Share: share, Of: of}
	total := int64(0)
	for _, n := range demands {
		total += n
	}
	over := func(limit int64) (calls int64, callers int) {
		for i := len(demands) - 1; i >= 0 && demands[i] > limit; i-- {
			calls, callers = calls+demands[i]-limit, callers+1
		}
		return calls, callers
	}
	high, err := lowestMax(func(limit int64) (bool, error) {
		calls, callers := over(limit)
		if of == "callers" {
			return Ratio(int64(callers), int64(len(demands))) <= share, nil
		}
		return Ratio(calls, total) <= share, nil
	})
	p.Max = high
	p.Refused, p.Hit = over(high)
	p.AtMost = atMost(p.Hit, len(demands))
	for _, n := range demands {
		p.Bytes += KeyBytes(r, min(n, high))
	}
	return p, err
}

// Ratio returns n of so many as a share; 0 of none.
func Ratio(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
