package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
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
	return c.edit(ctx, e, 0)
}

// keyTarget returns the target that is one key.
func (c *editing) keyTarget(args []string) (override.Target, error) {
	d, key, err := c.keyNamed(args)
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
	d, err := c.Rule(args[1])
	if err != nil {
		return err
	}
	target := override.Target{Rule: d.Name}
	if len(args) > 2 {
		if target, err = c.keyTarget(args[1:]); err != nil {
			return err
		}
	}
	return c.edit(ctx, override.Edit{Target: target, Set: rule.KeyOverride{Mode: &mode}}, 0)
}

// An overrideSetCommand changes an override as its flags say.
type overrideSetCommand struct {
	editing
	patterned
	maxText, burst, weight, scale, mode, enabled string
	window                                       time.Duration
}

// A patterned command may be of keys or shares of a rule.
type patterned struct{ keys, share string }

func (c *patterned) patternFlags() []cli.Flag {
	return []cli.Flag{text(&c.keys, "keys", "for the keys of a `pattern`, such as premium-* or one key, in place of the rule"),
		text(&c.share, "share", "for the shares of a `pattern`, such as premium-* or one share, of a rule that is divided")}
}

// target returns the rule, keys or shares that are named.
func (c *patterned) target(given func(string) bool, rule string) (override.Target, error) {
	t := override.Target{Rule: rule, Pattern: c.keys, Keys: given("keys"), Shares: given("share")}
	if t.Shares {
		t.Pattern = c.share
	}
	if t.Keys && t.Shares {
		return t, usagef("-keys and -share name two targets: make two changes")
	}
	if t.Shares && t.Pattern == "" {
		return t, usagef("-share is empty: a variable that is not set? Leave it out for the rule itself")
	}
	return t, nil
}

func (c *overrideSetCommand) about() about {
	return about{
		name: "override set", args: "RULE|*", short: "change a rule while programs run", needs: readsRules, min: 1, max: 1,
		long: "Sets the given fields, and keeps the others. With -keys the override applies to a pattern: a key as ratectl keys shows it, or the beginning of keys and a *; with -share to the -weight of shares. With -scale the max is a share of the present one. A RULE that ends with * names all rules that start so, and their change is one entry of the history; * with -enabled alone switches all limits. Writes nothing that a limiter would reject. " +
			"Asks for confirmation before a max of 0, mode shadow and what removes a whole limit.",
		flags: append(append(c.endFlags(), c.patternFlags()...),
			text(&c.maxText, "max", "admit `n` in a window; 0 admits nobody"),
			text(&c.burst, "burst", "admit `n` at once, of a bucket"),
			text(&c.weight, "weight", "the `weight` of a share beside others, from 1 to 1,000,000"),
			text(&c.scale, "scale", "admit a `share` of the present max, such as 50% or 200%"),
			duration(&c.window, "window", 0, "the time that the max refers to"),
			text(&c.mode, "mode", "enforce, soft or shadow"),
			text(&c.enabled, "enabled", "`bool`, of which false removes the limit and true restores it")),
	}
}

func (c *overrideSetCommand) run(ctx context.Context, args []string) error {
	target, err := c.target(c.given, args[0])
	e := override.Edit{Target: target}
	if err == nil {
		err = c.setFields(&e)
	}
	if err != nil {
		return err
	}
	share := 0.0
	if c.given("scale") {
		text, percent := strings.CutSuffix(c.scale, "%")
		n, err := strconv.ParseFloat(text, 64)
		if percent {
			n /= 100
		}
		if share = n; err != nil || !(share > 0 && share <= 1000) {
			return usagef("-scale %q: write a share of the present max above 0, such as 50%%; -max 0 admits nobody", c.scale)
		}
	}
	return c.edit(ctx, e, share)
}

// setFields sets what flags say.
func (c *overrideSetCommand) setFields(e *override.Edit) error {
	if c.given("max") {
		n, err := strconv.ParseInt(c.maxText, 10, 64)
		if err != nil || n < 0 {
			return usagef("-max %q: write a whole number, 0 to admit nobody", c.maxText)
		}
		e.Set.Max = &n
	}
	for name, said := range map[string]struct {
		text string
		most int64
		set  **int64
	}{"burst": {c.burst, rule.MaxCount, &e.Set.Burst}, "weight": {c.weight, rule.MaxWeight, &e.Set.Weight}} {
		n, err := strconv.ParseInt(said.text, 10, 64)
		if !c.given(name) {
			continue
		}
		if err != nil || n < 1 || n > said.most {
			return usagef("-%s %q: write a whole number from 1 to %d", name, said.text, said.most)
		}
		*said.set = &n
	}
	if e.Shares != (e.Set.Weight != nil) {
		return usagef("-share and -weight go together: name the share, and its weight")
	}
	if c.given("window") {
		e.Set.Window = &c.window
	}
	if c.given("mode") {
		mode, is := map[string]runtime.Mode{"enforce": runtime.ModeEnforce, "soft": runtime.ModeSoft, "shadow": runtime.ModeShadow}[c.mode]
		if !is {
			return usagef("-mode %q: write enforce, soft or shadow", c.mode)
		}
		e.Set.Mode = &mode
	}
	if c.given("enabled") {
		on, err := strconv.ParseBool(c.enabled)
		if err != nil {
			return usagef("-enabled %q: write true or false", c.enabled)
		}
		e.Set.Enabled = &on
	}
	if c.given("scale") && c.given("max") {
		return usagef("-scale and -max both say the max: leave one out")
	}
	if !c.given("scale") && e.Set == (rule.KeyOverride{}) {
		return usagef("what is to change? Say -max, -scale, -burst, -window, -mode or -enabled, or -weight of a -share")
	}
	return nil
}

// An overrideRemoveCommand takes an override or some of its fields away, also that of a rule
// which has gone.
type overrideRemoveCommand struct {
	editing
	patterned
	only string
}

func (c *overrideRemoveCommand) about() about {
	return about{
		name: "override rm", args: "RULE|*", short: "remove an override", needs: prints | needRedis | mayRules, min: 1, max: 1,
		long: "Removes the override of a rule but not of its keys and shares, or with -keys or -share that of one pattern, or with -only some fields. Removes invalid overrides, too.",
		flags: append(append(c.changeFlags(), c.patternFlags()...), c.yesFlag(),
			text(&c.only, "only", "remove only these `fields`, separated by commas: max, burst, window, mode, enabled, block, allow")),
	}
}

func (c *overrideRemoveCommand) run(ctx context.Context, args []string) error {
	target, err := c.target(c.given, args[0])
	if err != nil {
		return err
	}
	e := override.Edit{Target: target, Remove: true}
	if c.given("only") {
		e.Remove, e.Clear = false, strings.Split(c.only, ",")
	}
	return c.edit(ctx, e, 0)
}
