package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// errNoMax is why the max of a rule has no share.
var errNoMax = errors.New("each call brings its max")

// share returns what -scale says.
func (c *overrideSetCommand) share() (float64, error) {
	text, percent := strings.CutSuffix(c.scale, "%")
	share, err := strconv.ParseFloat(text, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0 && share <= 1000) {
		return 0, usagef("-scale %q: write a share of the present max above 0, such as 50%%; -max 0 admits nobody", c.scale)
	}
	return share, nil
}

// scaled sets the max that is a share of the present one, and admits somebody.
func (c *overrideSetCommand) scaled(ctx context.Context, e *override.Edit, d operate.Rule) error {
	share, err := c.share()
	if err != nil {
		return err
	}
	says, err := c.overridesNow(ctx)
	if err != nil {
		return err
	}
	if err := scaleMax(e, d, says.Rules[d.Name], share); err != nil {
		return usagef("-scale: rule %s: %v: write -max", d.Name, err)
	}
	return nil
}

func scaleMax(e *override.Edit, d operate.Rule, of rule.Override, share float64) error {
	present := d.Max
	switch {
	case of.Max != nil:
		present = *of.Max
	case d.ByCall != "":
		return errNoMax
	}
	e.Set.Max = new(max(min(1, present), int64(math.Round(float64(present)*share))))
	return nil
}

// A severalLine is the override of one of several rules, before and after a change of all.
type severalLine struct {
	Rule   string         `json:"rule"`
	Before *overrideEntry `json:"before"`
	After  *overrideEntry `json:"after"`
	ID     int64          `json:"id"` // of the change in the history; 0: nothing is changed
}

func (l severalLine) row() []string {
	says := func(e *overrideEntry) string {
		if e == nil {
			return "-"
		}
		return e.change.String()
	}
	return rowOf(l.Rule, says(l.Before), says(l.After))
}

// several changes the overrides of all rules that start alike, as one change.
func (c *overrideSetCommand) several(ctx context.Context, base override.Edit) error {
	start := strings.TrimSuffix(base.Rule, "*")
	if base.Keys {
		return usagef("-keys is for one rule: name that in place of %s", base.Rule)
	}
	editor, err := c.editor()
	if err != nil {
		return err
	}
	share := 0.0
	if c.given("scale") {
		if share, err = c.share(); err != nil {
			return err
		}
	}
	if err := c.setExpiry(ctx, &base); err != nil {
		return err
	}
	says, err := c.overridesNow(ctx)
	if err != nil {
		return err
	}
	var edits []override.Edit
	known := make(map[string]bool)
	for _, d := range c.Rules {
		if d.Name == "" || known[d.Name] || !strings.HasPrefix(d.Name, start) {
			continue
		}
		known[d.Name] = true
		e := base
		e.Target = override.Target{Rule: d.Name}
		if share > 0 {
			if err := scaleMax(&e, d, says.Rules[d.Name], share); err != nil {
				c.logger().Printf("rule %s is left as it is: %v", printable(d.Name), err)
				continue
			}
		}
		edits = append(edits, e)
	}
	if len(edits) == 0 {
		return usagef("no rule that starts with %q can be changed so; ratectl rules lists them", start)
	}
	if !c.dry {
		which := "all that are listed"
		if start != "" {
			which = fmt.Sprintf("those whose names start with %q", start)
		}
		if err := c.confirm(ctx, "change %d rules, %s, in every program that reads %q", len(edits), which, c.overrides); err != nil {
			return err
		}
	}
	base.Who, base.Why, base.Try = c.author(), c.why, c.dry
	done, id, err := editor.EditAll(ctx, base, edits)
	if err != nil {
		return err
	}
	lines := make([]severalLine, len(done))
	for i, d := range done {
		lines[i] = severalLine{Rule: edits[i].Rule, ID: id}
		c.warnOfBurst(edits[i].Target, d.After)
		if !d.Before.Empty() {
			lines[i].Before = new(entryOf(edits[i].Target, d.Before))
		}
		if !d.After.Empty() {
			lines[i].After = new(entryOf(edits[i].Target, d.After))
		}
	}
	if err := printEach(&c.printer, "RULE BEFORE AFTER", lines, severalLine.row); err != nil {
		return err
	}
	undo := "nothing is changed"
	if id > 0 {
		undo = fmt.Sprintf("to undo all of it: ratectl undo %d", id)
	}
	c.printf("%s", undo)
	return c.awaited(ctx)
}
