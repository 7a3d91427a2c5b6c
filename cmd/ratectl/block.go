package main

import (
	"context"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// A keyCommand changes the override of one key in one way.
type keyCommand struct {
	editing
	name, short, long string
	edits             override.Edit
}

// keyCommands returns block, allow, and what undoes them.
func keyCommands() []command {
	of := func(name, short string, edits override.Edit, long string) command {
		return &keyCommand{name: name, short: short, edits: edits, long: long}
	}
	return []command{
		of("block", "refuse all calls of one caller", override.Edit{Block: true},
			"Sets the field block in the override of the key, and keeps the others. Asks for confirmation if the rule has no key, or no process that reports follows the hash, see override.Redis."),
		of("unblock", "undo block", override.Edit{Clear: []string{"block"}}, "Removes the field block only. Use reset to end a block of the rule itself."),
		of("allow", "remove the limit of one caller", override.Edit{Allow: true},
			"Sets the field allow in the override of the key, and keeps the others. A block precedes it. Asks for confirmation if the rule has no key."),
		of("unallow", "undo allow", override.Edit{Clear: []string{"allow"}}, "Removes the field allow only."),
	}
}

func (c *keyCommand) about() about {
	flags := c.endFlags()
	if len(c.edits.Clear) > 0 {
		flags = c.changeFlags()
	}
	return about{name: c.name, args: "RULE [KEY]", short: c.short, long: c.long, flags: append(flags, c.partsFlag()), needs: readsRules, min: 1, max: 2}
}

func (c *keyCommand) run(ctx context.Context, args []string) (err error) {
	e := c.edits
	if e.Target, err = c.keyTarget(args); err != nil {
		return err
	}
	return c.edit(ctx, e)
}

// keyTarget returns the target that is one key.
func (c *editing) keyTarget(args []string) (override.Target, error) {
	d, _, key, err := c.limitNamed(args)
	if err != nil {
		return override.Target{}, err
	}
	return override.Target{Rule: d.Name, Pattern: key.Pattern(), Keys: true}, nil
}

// A shadowCommand counts the calls of a rule, or of one key, and refuses none.
type shadowCommand struct{ editing }

func (c *shadowCommand) about() about {
	return about{
		name: "shadow", args: "on|off RULE [KEY]", short: "count the calls of a rule, and refuse none", needs: readsRules, min: 2, max: 3,
		long:  "Sets the mode of the rule, or of one key, by an override: shadow for on, enforce for off. Keeps the other fields. Asks for confirmation before on.",
		flags: append(c.endFlags(), c.partsFlag()),
	}
}

func (c *shadowCommand) run(ctx context.Context, args []string) error {
	mode, is := map[string]runtime.Mode{"on": runtime.ModeShadow, "off": runtime.ModeEnforce}[args[0]]
	if !is {
		return usagef("shadow %q: write on or off", args[0])
	}
	d, err := c.rule(args[1])
	if err != nil {
		return err
	}
	target := override.Target{Rule: d.Name}
	if len(args) > 2 {
		if target, err = c.keyTarget(args[1:]); err != nil {
			return err
		}
	}
	return c.edit(ctx, override.Edit{Target: target, Set: runtime.KeyOverride{Mode: &mode}})
}
