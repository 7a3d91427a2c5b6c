package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// An Affected says what a change would do to callers, as far as Redis knows.
type Affected struct {
	Callers int64    `json:"callers"`           // whose keys are counted now
	Refused int64    `json:"refused"`           // of these, a call of a cost of 1, as it is
	Would   int64    `json:"would_be_refused"`  // with the change
	Unknown []string `json:"partial,omitempty"` // why that is not all
}

func (a *Affected) String() string {
	text := fmt.Sprintf("callers that are counted now: %d, refused now: %d, with the change: %d", a.Callers, a.Refused, a.Would)
	if len(a.Unknown) > 0 {
		text += "; that is not all: " + strings.Join(a.Unknown, ", ")
	}
	return text
}

// Affected finds out what the next call of each caller of a target would find, now and after a change.
func (c *Core) Affected(ctx context.Context, t override.Target, after override.Change) (*Affected, error) {
	a := new(Affected)
	if err := c.Renew(ctx); err != nil {
		return nil, err
	}
	modified := *c // but for the limiter and what is in force
	modified.Limiter = nil
	change := after.At(time.Now())
	if c.Rejected {
		a.Unknown = append(a.Unknown, "the limiters reject the hash, and here limits are as declared")
	}
	err := modified.renew(ctx, changed(c.Modes, t, change))
	defer func() { _ = modified.Limiter.Close() }()
	if err != nil {
		return nil, err
	}
	rules := slices.DeleteFunc(slices.Clone(c.Rules), func(d Rule) bool { return t.Rule != override.All && t.Rule != d.Name })
	if c.Max == 0 && change.Max == nil && slices.ContainsFunc(rules, func(d Rule) bool { return d.ByCall != "" }) {
		a.Unknown = append(a.Unknown, "callers who bring their max are judged by that of their last refusal, or by none")
	}
	of := func(pattern string) bool {
		_, is := Matching(map[string]bool{t.Pattern: true}, pattern)
		return is || !t.Keys // the keys of a rule are those of its shares
	}
	err = Judge(ctx, rules, of, func(_ Rule, states []State) {
		a.Callers++
		for i, n := range []*int64{&a.Refused, &a.Would} {
			if states[i].Refuses() && !states[i].Shadow {
				*n++
			}
		}
	}, c, &modified)
	if one := t.Keys && !strings.HasSuffix(t.Pattern, "*"); change.Max != nil && *change.Max == 0 && (!one || a.Callers == 0) {
		a.Unknown = append(a.Unknown, "those for whom nothing is counted are refused too")
	}
	return a, err
}

// changed returns overrides in which a target has others.
func changed(says runtime.Overrides, t override.Target, to rule.KeyOverride) runtime.Overrides {
	if t.Rule == override.All {
		says.Enabled = to.Enabled
		return says
	}
	says.Rules = cloned(says.Rules)
	of := says.Rules[t.Rule]
	if t.Keys || t.Shares {
		patterns := &of.Keys
		if t.Shares {
			patterns = &of.Shares
		}
		*patterns = cloned(*patterns)
		delete(*patterns, t.Pattern)
		if to != (rule.KeyOverride{}) {
			(*patterns)[t.Pattern] = to
		}
	} else {
		of.Max, of.Burst, of.Window, of.Mode, of.Enabled = to.Max, to.Burst, to.Window, to.Mode, to.Enabled
	}
	says.Rules[t.Rule] = of
	return says
}
