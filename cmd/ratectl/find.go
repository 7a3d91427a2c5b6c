package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/printed"
)

// A foundKey is a key that concerns a caller in JSON.
type foundKey struct {
	operate.State
	Refused   *operate.RefusedCaller `json:"refused"` // null: nothing is told of the last day
	Overrides []operate.Override     `json:"overrides"`
}

func (f foundKey) row() []string {
	says := make([]string, len(f.Overrides))
	for i, e := range f.Overrides {
		says[i] = e.String()
	}
	refused := "-"
	if r := f.Refused; r != nil {
		refused = fmt.Sprintf("%s, last %v", timesOf(r), r.Last())
	}
	return append(append([]string{f.Rule}, stateRow(f.State)...), refused, cmp.Or(strings.Join(says, "; "), "-"))
}

// A findCommand lists all that concerns a caller, whatever the rule.
type findCommand struct {
	pastCommand
	limit int
}

func (c *findCommand) about() about {
	return about{
		name: "find", args: "TEXT", short: "find a caller: rules, keys and overrides", needs: judgesKeys, min: 1, max: 1,
		long: "Finds the keys of all rules with TEXT in a part, those with TEXT as a part first, and of these those that are refused: what is left of each, and how often and when it was refused in the last day, and which overrides decide for it, until when. TEXT is as the caller is called, or as ratectl keys shows a key. " +
			"Of an address it finds the networks /64, /56 and /48 too. Keys for which nothing is counted are shown if an override is for them, or they were refused. Has Redis walk over the database.",
		flags: []cli.Flag{limitFlag(&c.limit), c.nearFlag(), c.maxFlag(), c.secretFlag()},
	}
}

func (c *findCommand) run(ctx context.Context, args []string) error {
	if args[0] == "" {
		return usagef("find what? Name a caller, as in ratectl find acme")
	}
	entries, err := c.Deciding(ctx)
	if err != nil {
		return err
	}
	if err := c.readSecret(); err != nil {
		return err
	}
	c.Compare(ctx)
	found, err := c.Find(ctx, args[0], entries, c.limit)
	if err != nil {
		return err
	}
	if found.Unread != nil { // what holds now is known without
		c.logger().Printf("when callers were refused is not known: %v", c.explained(found.Unread))
	}
	if found.All == 0 && len(found.Overrides) == 0 {
		return nothingf("nothing is counted for a key with %q in %s, and no override is for one; a caller for whom nothing is counted is refused by no rule, unless by a failure policy", args[0], operate.Namespaces(c.Namespace))
	}
	keys, names := make([]foundKey, len(found.Keys)), make([]string, len(found.Keys))
	for i, k := range found.Keys {
		names[i], keys[i] = k.Rule, foundKey{k.State, k.Refused, k.Overrides}
	}
	c.sayDiffering(names...)
	if err := printEach(&c.printer, "RULE "+keyHead+" REFUSED OVERRIDES", keys, foundKey.row); err != nil {
		return err
	}
	if found.All > found.Judged {
		c.logger().Printf("of %d keys %d were judged, those first that were refused in the last day: name more of the caller", found.All, found.Judged)
	}
	if found.All > len(keys) {
		c.logger().Printf("these are the worst %d of %d keys, see -limit", len(keys), found.All)
	}
	for _, e := range found.Overrides[:min(len(found.Overrides), 10)] {
		e.Last = nil
		c.logger().Printf("an override that decides for none of these keys: %s, of rule %s", visible(e.String()), printed.Text(e.Rule))
	}
	return nil
}
