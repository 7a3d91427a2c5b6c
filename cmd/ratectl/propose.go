package main

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/internal/replay"
	"github.com/rategen/rategen/runtime"
)

// A proposeCommand finds the max of a rule that would have refused few.
type proposeCommand struct {
	session
	changes
}

func (c *proposeCommand) about() about {
	return about{
		name: "propose", args: "RULE RECORD...", short: "find the max that would have refused none, 0.1% or 1%", needs: prints | mayRules, min: 2, max: -1,
		long:  "Replays records with one max after the other, and finds the lowest ones that would have refused none, at most 0.1% and at most 1% of the calls, and of the callers. The other flags of plan say what else is to be different, the algorithm for instance. The column AT MOST says of how many of all callers that holds, by 95%. It names the callers that need most, and estimates what Redis would hold if all were there at a time.",
		flags: c.changes.flags(),
	}
}

// A proposal is a max, and what it would have done.
type proposal struct {
	Share   float64 `json:"share"`
	Of      string  `json:"of"` // calls or callers
	Max     int64   `json:"max"`
	Refused int64   `json:"refused_calls"`
	Hit     int     `json:"refused_callers"`
	AtMost  float64 `json:"callers_at_most"` // a share, by 95%
	Bytes   int64   `json:"redis_bytes"`
}

func (p proposal) row() []string {
	return []string{percent(p.Share) + " of the " + p.Of, strconv.FormatInt(p.Max, 10), strconv.FormatInt(p.Refused, 10), strconv.Itoa(p.Hit),
		percent(p.AtMost), strconv.FormatInt((p.Bytes+1023)/1024, 10) + " KiB"}
}

func (c *proposeCommand) run(ctx context.Context, args []string) error {
	records, done, err := openRecords(args[1:])
	defer done()
	if err != nil {
		return err
	}
	if len(c.changes.max) > 0 {
		return usagef("propose finds the max: leave -max out, or ask plan what one does")
	}
	change, err := c.change(ctx, &c.session)
	if err != nil {
		return err
	}
	s := &search{rule: args[0], records: records, change: change, found: map[int64]*replay.Rule{}}
	shares := []float64{0, 0.001, 0.01}
	var all []proposal
	var outliers []*replay.Side
	for _, of := range []string{"calls", "callers"} {
		for _, share := range shares {
			p, sides, err := s.lowest(ctx, share, of)
			if err != nil {
				return err
			}
			if all = append(all, p); share == shares[len(shares)-1] && outliers == nil {
				outliers = sides
			}
		}
	}
	change.tell(s.last)
	if err := printEach(&c.printer, "REFUSES MAX CALLS CALLERS AT-MOST REDIS", all, proposal.row); err != nil || c.json() {
		return err
	}
	found := s.found[all[0].Max]
	c.printf("%d calls of %d callers from %s to %s", found.Calls, found.Callers, s.last.From.Format(time.RFC3339), s.last.To.Format(time.RFC3339))
	outliers = slices.DeleteFunc(outliers, func(o *replay.Side) bool { return o.Now == 0 }) // it refuses others less than before
	for _, o := range outliers[:min(5, len(outliers))] {
		c.printf("%s needs more than the max for 1%% of the calls: it refuses %d of its %d", o.Caller, o.Now, o.Calls)
	}
	for _, note := range s.last.Notes {
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
		if names = append(names, of.Name); of.Name == s.rule {
			s.found[max] = of
			return of, nil
		}
	}
	return nil, usagef("the records have no call of %q%s", s.rule, suggest(s.rule, names))
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
	low, high := int64(0), int64(1)
	for {
		ok, err := fits(high)
		if err != nil {
			return proposal{}, nil, err
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
			return proposal{}, nil, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	best := s.found[high]
	hit := float64(best.HitNow)
	atMost := min(1, (hit+1.92+1.96*math.Sqrt(hit+0.96))/float64(max(1, best.Callers)))
	if best.HitNow == 0 { // the rule of three
		atMost = min(1, 3/float64(max(1, best.Callers)))
	}
	return proposal{share, of, high, best.After.Refused, best.HitNow, atMost, held(best, high)}, best.Sides, nil
}

// held estimates how much Redis would hold: 100 bytes for a key, and the events of a log.
func held(of *replay.Rule, max int64) (bytes int64) {
	for _, n := range of.Peaks {
		bytes += 100 + of.EventBytes(min(n, max))
	}
	return bytes
}
