package operate

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

type Edit struct {
	override.Edit
	Scale float64 // the max is to be this share of the present one; 0: not said
}

// Edits returns what is to be changed for an edit, of a rule or of all rules whose names start alike, and
// whether it is of several: the rule then ends with *.
func (c *Core) Edits(ctx context.Context, e Edit) (all []override.Edit, several bool, err error) {
	start, several := strings.CutSuffix(e.Rule, "*")
	onlyEnabled := e.Scale == 0 && e.Set == (rule.KeyOverride{Enabled: e.Set.Enabled})
	if e.Remove || e.Rule == override.All && (onlyEnabled || e.Keys || e.Shares) {
		return []override.Edit{e.Edit}, false, nil
	}
	if !several {
		return c.editOne(ctx, e)
	}
	if e.Keys || e.Shares {
		return nil, true, Wrongf("-keys and -share are for one rule: name that in place of %s", e.Rule)
	}
	known, left := make(map[string]bool), []string(nil)
	says, err := c.scaled(ctx, e)
	if err != nil {
		return nil, true, err
	}
	for _, r := range c.Rules {
		if r.Name == "" || known[r.Name] || !strings.HasPrefix(r.Name, start) {
			continue
		}
		known[r.Name] = true
		one := e.Edit
		one.Target = override.Target{Rule: r.Name}
		if one.Set.Max, err = r.scaled(one.Set.Max, says.Rules[r.Name], e.Scale); err != nil {
			left = append(left, fmt.Sprintf("rule %s is left as it is: %v", r.Name, err))
			continue
		}
		all = append(all, one)
	}
	c.WarnOf(left)
	if len(all) == 0 {
		return nil, true, Wrongf("no rule that starts with %q can be changed so; ratectl rules lists them", start)
	}
	return all, true, nil
}

func (c *Core) editOne(ctx context.Context, e Edit) ([]override.Edit, bool, error) {
	if len(c.Rules) == 0 || len(e.Clear) > 0 { // it may be of a rule that is gone
		return []override.Edit{e.Edit}, false, nil
	}
	r, err := c.Rule(e.Rule)
	if err != nil {
		return nil, false, err
	}
	e.Rule = r.Name
	if e.Keys && !e.Block && !e.Allow {
		if err := r.FitsPattern(e.Pattern); err != nil {
			return nil, false, err
		}
	}
	if (e.Keys || e.Shares) && e.Scale > 0 {
		return nil, false, Wrongf("-scale is of the max of a rule: write the -max of these keys, or the -weight of these shares")
	}
	if e.Shares && r.Headroom == 0 {
		return nil, false, Wrongf("rule %s divides nothing, so it has no shares: leave -share out", r.Name)
	}
	if e.Set.Burst != nil && !algorithm.RowOf(r.Algorithm).Is(algorithm.Drains) {
		return nil, false, Wrongf("rule %s counts with a %v, which has no burst: leave -burst out, and set -max", r.Name, r.Algorithm)
	}
	says, err := c.scaled(ctx, e)
	if err == nil {
		if e.Set.Max, err = r.scaled(e.Set.Max, says.Rules[r.Name], e.Scale); err != nil {
			err = Wrongf("-scale: rule %s: %v: write -max", r.Name, err)
		}
	}
	return []override.Edit{e.Edit}, false, err
}

// scaled returns the overrides that are to be scaled, if some are.
func (c *Core) scaled(ctx context.Context, e Edit) (says runtime.Overrides, err error) {
	if e.Scale > 0 && c.Hash != "" {
		says, err = c.OverridesNow(ctx)
	}
	return says, err
}

// scaled returns the max that is a share of the present one, and admits somebody. Without a share it is as
// it was said.
func (r Rule) scaled(said *int64, of rule.Override, share float64) (*int64, error) {
	present := r.Max
	if share == 0 {
		return said, nil
	}
	if of.Max != nil {
		present = *of.Max
	} else if r.ByCall != "" {
		return nil, fmt.Errorf("each call brings its max")
	}
	return new(max(min(1, present), int64(math.Round(float64(present)*share)))), nil
}

// Questions returns what is to be asked before an edit that concerns several rules or many callers, refuses all of
// their calls, is of a hash that nobody follows, or of a key that calls may not have.
func (c *Core) Questions(ctx context.Context, e override.Edit, rules int, several bool, f Following) (all []string, err error) {
	ask := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if start := strings.TrimSuffix(e.Rule, "*"); several && start == "" {
		ask("change %d rules, all that are listed, in every program that reads %q", rules, c.Hash)
	} else if several {
		ask("change %d rules, those whose names start with %q, in every program that reads %q", rules, start, c.Hash)
	}
	of, whole := TargetText(e.Target), !e.Keys && !e.Shares || e.Pattern == "" || e.Pattern == "*"
	off := e.Set.Enabled != nil && !*e.Set.Enabled
	switch {
	case e.Rule == override.All && off:
		ask("remove all limits of every program that reads %q", c.Hash)
	case e.Set.Max != nil && *e.Set.Max == 0, e.Block && whole:
		ask("refuse all calls of %s", of)
	case e.Set.Mode != nil && !e.Set.Mode.Refuses():
		ask("refuse no call of %s", of)
	case whole && (e.Allow || off):
		ask("remove the limit of %s", of)
	}
	if e.Remove || len(e.Clear) > 0 {
		return all, nil
	}
	if f.Processes > 0 && f.Follow == 0 {
		ask("write to %q, though %v", c.Hash, f)
	}
	why, err := c.Unlikely(ctx, e.Target)
	if why != "" {
		ask("write an override for %s, though nothing is counted for that: %s", of, why)
	}
	return all, err
}

// WithoutEffect warns of overrides that have no effect, since all limits or those of their rule are
// switched off, and of a max below the burst that the rule declares, which stays.
func (c *Core) WithoutEffect(ctx context.Context, edits []override.Edit, done []override.Edited) {
	says, err := c.OverridesNow(ctx)
	off := func(enabled *bool) bool { return err == nil && enabled != nil && !*enabled }
	rules := make(map[string]Rule, len(c.Rules))
	for _, r := range c.Rules {
		rules[r.Name] = r
	}
	var bursts []string
	for i, e := range edits {
		after := done[i].After
		switch {
		case e.Rule == override.All || after.Empty():
		case off(says.Enabled) && i == 0:
			c.warnf("it has no effect yet: all limits are switched off, until ratectl override rm '*'")
		case (e.Keys || e.Shares) && !after.Block && after.Enabled == nil && off(says.Rules[e.Rule].Enabled):
			c.warnf("it has no effect yet: rule %[1]s is switched off, until ratectl override rm %[1]s -only enabled", e.Rule)
		}
		r, is := rules[e.Rule]
		if !is || after.Max == nil || *after.Max == 0 || after.Burst != nil || says.Rules[e.Rule].Burst != nil || *after.Max >= r.AtOnce() {
			continue
		}
		window := r.Per()
		if after.Window != nil {
			window = ShortDuration(*after.Window)
		}
		bursts = append(bursts, fmt.Sprintf("rule %s declares burst=%d, which stays: a caller may still make %d calls at once, and then %d per %s", e.Rule, r.Burst, r.Burst, *after.Max, window))
	}
	c.WarnOf(bursts)
}

// AtOnce returns how much a bucket admits at once if its rule says so, or 0. The burst of a queue is
// how many may wait.
func (r Rule) AtOnce() int64 {
	if r.Wait > 0 && algorithm.RowOf(r.Algorithm).Meets(algorithm.Wait) {
		return 0
	}
	return r.Burst
}
