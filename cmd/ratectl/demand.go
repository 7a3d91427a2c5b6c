package main

import (
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/replay"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// fromRedis proposes by what Redis knows without records.
func (c *proposeCommand) fromRedis(ctx context.Context, name string) (err error) {
	for _, f := range append(c.changes.flags(), yesNo(new(bool), "compare", "")) {
		if c.given(f.Names()[0]) {
			return usagef("-%s is for records: name some, or leave it out", f.Names()[0])
		}
	}
	if c.Rules == nil {
		if c.Rules, err = c.listed(ctx); err != nil {
			return err
		}
	}
	d, err := c.Rule(name)
	if err != nil {
		return err
	}
	if a := d.Algorithm; !algorithm.RowOf(a).Is(algorithm.Slides) {
		return usagef("Redis does not know what callers of a %v have used in the last window: record them, see package raterecord", a)
	}
	if err := c.open(ctx, true); err != nil {
		return err
	}
	c.session.Max = rule.MaxLog // callers may have used more than the max that is declared
	used, refused, err := c.demands(ctx, d)
	if err != nil {
		return err
	}
	if len(used) == 0 {
		return c.NoKeys(ctx, d)
	}
	demands := make([]int64, 0, len(used))
	calls := int64(0)
	for key, n := range used {
		demands = append(demands, n+refused[key])
		calls += n + refused[key]
	}
	slices.Sort(demands)
	all, err := replay.EachShare(func(share float64, of string) (replay.Proposal, error) {
		return replay.LowestOf(demands, share, of, d.Rule)
	})
	if err != nil {
		return err
	}
	if err := printEach(&c.printer, proposalHead, all, proposalRow); err != nil || c.json() {
		return err
	}
	c.printf("%d calls of %d callers in the last %v", calls, len(demands), operate.ShortDuration(d.Window))
	c.printf("note: This is one window alone, by what Redis counts now. Callers who came earlier are not in it: record some days, and replay them.")
	if c.Shadows(d, runtime.NewKey()) {
		c.printf("note: The rule is in shadow mode: Redis does not count what is over its max.")
	}
	c.printf("note: A caller who is blocked, or held by a peer, is taken to have used the max.")
	c.printf("note: Refused callers may have come again: then the max is too high. Those are counted by the minute, of the 100 that were refused most.")
	return nil
}

// demands returns what each caller has used in the last window, and how often it was refused in that.
func (c *proposeCommand) demands(ctx context.Context, d operate.Rule) (used, refused map[string]int64, err error) {
	used, refused = map[string]int64{}, map[string]int64{}
	err = c.Walk(ctx, []operate.Rule{d}, func(_ operate.Rule, k operate.State) {
		if k.State == operate.Blocked || k.State == operate.Held { // nobody can read more
			k.Used = d.Max
		}
		used[k.Key] += k.Used
	})
	if err != nil {
		return nil, nil, err
	}
	past, err := c.refused(ctx, max(d.Window, time.Minute), 0)
	if err != nil {
		return nil, nil, err
	}
	hidden := map[string]string{}
	if len(c.Secret) > 0 {
		for pattern := range used {
			if key, err := rule.ParseKey(pattern); err == nil {
				hidden[c.Hidden(key.String())] = pattern
			}
		}
	}
	for _, r := range past.Callers {
		if r.Rule != d.Name {
			continue
		}
		key := r.Key
		if pattern, is := hidden[r.Text]; is {
			key = pattern
		}
		n := r.Refused
		if d.Window < time.Minute { // they are counted by the minute
			n = int64(float64(n) * float64(d.Window) / float64(time.Minute))
		}
		refused[key] += n
		used[key] += 0
	}
	return used, refused, nil
}
