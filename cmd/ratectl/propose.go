package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/rategen/rategen/internal/nearest"
	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/internal/replay"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime"
)

// A proposeCommand finds the max of a rule that would have refused few.
type proposeCommand struct {
	pastCommand
	changes
	compare bool
}

func (c *proposeCommand) about() about {
	return about{
		name: "propose", args: "RULE [RECORD...]", short: "find the max that would have refused none, 0.1% or 1%", needs: prints | mayRules | mayRedis, min: 1, max: -1,
		long: "Replays records with one max after the other, and finds the lowest ones that would have refused none, at most 0.1% and at most 1% of the calls, and of the callers. The other flags of plan say what else is to be different, the algorithm for instance. The column AT MOST says of how many of all callers that holds, by 95%. It names the callers that need most, and estimates what Redis would hold if all were there at a time. " +
			"Without a RECORD it asks Redis what each caller of a sliding-log or sliding-counter has used in the last window, and how often it was refused: a first answer, and a partial one.",
		flags: append(c.changes.flags(), c.secretFlag(),
			yesNo(&c.compare, "compare", "propose for each algorithm")),
	}
}

// A proposal is a max, and what it would have done.
type proposal struct {
	Algorithm string  `json:"algorithm"`
	Share     float64 `json:"share"`
	Of        string  `json:"of"` // calls or callers
	Max       int64   `json:"max"`
	Refused   int64   `json:"refused_calls"`
	Hit       int     `json:"refused_callers"`
	AtMost    float64 `json:"callers_at_most"` // a share, by 95%
	Bytes     int64   `json:"redis_bytes"`
}

func (p proposal) row() []string {
	return []string{percent(p.Share) + " of the " + p.Of, p.Algorithm, strconv.FormatInt(p.Max, 10), strconv.FormatInt(p.Refused, 10),
		strconv.Itoa(p.Hit), percent(p.AtMost), strconv.FormatInt((p.Bytes+1023)/1024, 10) + " KiB"}
}

const proposalHead = "REFUSES ALGORITHM MAX CALLS CALLERS AT-MOST REDIS"

// shares are of how many calls and callers a max is proposed that refuses no more.
var shares = []float64{0, 0.001, 0.01}

func (c *proposeCommand) run(ctx context.Context, args []string) error {
	if len(c.changes.max) > 0 {
		return usagef("propose finds the max: leave -max out, or ask plan what one does")
	}
	if len(args) == 1 {
		return c.fromRedis(ctx, args[0])
	}
	records, done, err := openRecords(args[1:])
	defer done()
	if err != nil {
		return err
	}
	change, err := c.change(ctx, &c.session, records)
	if err != nil {
		return err
	}
	s := &search{rule: args[0], records: records, change: change, found: map[int64]*replay.Rule{}}
	all, outliers, err := s.proposals(ctx)
	if err != nil {
		return err
	}
	found, last := s.found[all[0].Max], s.last
	declared := found.Changed().Algorithm
	for a := runtime.SlidingLog; c.compare && int(a) < len(spec.Algorithms); a++ {
		if a == declared || a == runtime.Concurrency || declared == runtime.Concurrency {
			continue
		}
		with := &search{rule: s.rule, records: records, change: change, found: map[int64]*replay.Rule{}, algorithm: &a}
		others, _, err := with.proposals(ctx)
		if err == nil {
			all = append(all, others...)
		} else if ctx.Err() != nil {
			return err
		} else {
			last.Notes = append(last.Notes, fmt.Sprintf("Not for %v: %v.", a, err))
		}
	}
	change.tell(last)
	if err := printEach(&c.printer, proposalHead, all, proposal.row); err != nil || c.json() {
		return err
	}
	c.printf("%d calls of %d callers from %s to %s", found.Calls, found.Callers, last.From.Format(time.RFC3339), last.To.Format(time.RFC3339))
	outliers = slices.DeleteFunc(outliers, func(o *replay.Side) bool { return o.Now == 0 }) // it refuses others less than before
	for _, o := range outliers[:min(5, len(outliers))] {
		c.printf("%s needs more than the max for 1%% of the calls: it refuses %d of its %d", o.Caller, o.Now, o.Calls)
	}
	for _, note := range last.Notes {
		c.printf("note: %s", note)
	}
	return nil
}

// A search is for a max.
type search struct {
	rule    string
	records *replay.Records
	change  *ruleChange
	found   map[int64]*replay.Rule
	last    *replay.Result

	algorithm *runtime.Algorithm // nil: the one of the rule
}

// proposals returns the lowest max for each share, and whom the one for most calls refuses most.
func (s *search) proposals(ctx context.Context) (all []proposal, outliers []*replay.Side, err error) {
	all, err = eachShare(func(share float64, of string) (proposal, error) {
		p, sides, err := s.lowest(ctx, share, of)
		if of == "calls" {
			outliers = sides
		}
		return p, err
	})
	return all, outliers, err
}

// at replays with a max.
func (s *search) at(ctx context.Context, max int64) (*replay.Rule, error) {
	if of := s.found[max]; of != nil {
		return of, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	made := map[*runtime.Rule]*runtime.Rule{}
	result, err := s.records.Run(func(state record.RuleState, own int64) (*runtime.Rule, int64, bool) {
		r, now, on := s.change.of(state, own)
		if state.Declared.Name != s.rule || !on {
			return r, now, on
		}
		if made[r] == nil {
			with := *r
			with.Max, with.Mode = max, runtime.ModeEnforce
			if s.algorithm != nil {
				countBy(&with, *s.algorithm)
			}
			made[r] = &with
		}
		return made[r], max, true
	})
	if err != nil {
		return nil, usagef("%v", err)
	}
	s.last = result
	var names []string
	for _, of := range result.Rules {
		names = append(names, of.Name)
		if of.Name == s.rule {
			if of.Changed() == nil {
				return nil, usagef("%s refuses nobody after the changes: they remove it", s.rule)
			}
			s.found[max] = of
			return of, nil
		}
	}
	return nil, usagef("the records have no call of %q%s", s.rule, nearest.Hint(s.rule, names))
}

// lowest returns the lowest max that refuses at most a share of the calls or callers.
func (s *search) lowest(ctx context.Context, share float64, of string) (proposal, []*replay.Side, error) {
	fits := func(max int64) (bool, error) {
		r, err := s.at(ctx, max)
		if err != nil {
			return false, err
		}
		refused, all := r.After.Refused, r.Calls
		if of == "callers" {
			refused, all = int64(r.HitNow), int64(r.Callers)
		}
		return ratio(refused, all) <= share, nil
	}
	high, err := lowestMax(fits)
	if err != nil {
		return proposal{}, nil, err
	}
	best := s.found[high]
	return proposal{best.Changed().Algorithm.String(), share, of, high, best.After.Refused, best.HitNow, atMost(best.HitNow, best.Callers), held(best, high)}, best.Sides, nil
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

// eachShare returns a proposal for each share of the calls, and then of the callers.
func eachShare(propose func(share float64, of string) (proposal, error)) (all []proposal, err error) {
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

// held estimates how much Redis would hold.
func held(of *replay.Rule, max int64) (bytes int64) {
	for _, n := range of.Peaks {
		bytes += replay.KeyBytes(of.Changed(), min(n, max))
	}
	return bytes
}
