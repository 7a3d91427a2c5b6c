package main

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/operate"
)

// A keysCommand lists the keys of a rule, the most refused first.
type keysCommand struct {
	session
	filter string
	limit  int
}

func (c *keysCommand) about() about {
	return about{
		name: "keys", args: "RULE", short: "list the callers of a rule, the most refused first", needs: judgesKeys, min: 1, max: 1,
		long: "Walks over the database and shows what a call of each key would find, without charging it. A rule in shadow mode is shown as if it enforced its limit.",
		flags: []cli.Flag{
			text(&c.filter, "state", "only keys in these `states`, separated by commas: near, refused, held (since a peer has asked for it), blocked, broken (by another program), ok, off"),
			limitFlag(&c.limit), c.nearFlag(), c.maxFlag(),
		},
	}
}

func (c *keysCommand) run(ctx context.Context, args []string) error {
	d, err := c.Rule(args[0])
	if err != nil {
		return err
	}
	wanted, err := wantedStates(c.filter)
	if err != nil {
		return err
	}
	if d.ByCall != "" && c.Max == 0 && c.filter != "" {
		return usagef("calls of rule %s bring a max of their own, %s: say with -max which one to judge by", d.Name, d.ByCall)
	}
	c.Compare(ctx)
	keys, err := c.Core.Keys(ctx, d, wanted, c.limit)
	if err != nil {
		return err
	}
	if keys.Total == 0 {
		return c.NoKeys(ctx, d)
	}
	c.sayDiffering(d.Name)
	if err := printEach(&c.printer, keyHead, keys.Top, stateRow); err != nil {
		return err
	}
	if len(keys.Top) < keys.Matched {
		c.logger().Printf("these are the first %d of %d keys, see -limit and -state", len(keys.Top), keys.Matched)
	}
	return nil
}

// keyHead are the headings of keys.
const keyHead = "KEY STATE USED RETRY RESET"

// wantedStates returns the states that a filter names: all if it is empty.
func wantedStates(filter string) ([]string, error) {
	if filter == "" {
		return operate.States, nil
	}
	wanted := strings.Split(filter, ",")
	for _, state := range wanted {
		if !slices.Contains(operate.States, state) {
			return nil, usagef("-state %q: write some of %s, separated by commas", state, strings.Join(operate.States, ", "))
		}
	}
	return wanted, nil
}
