package main

import (
	"context"
	"strconv"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// change returns the change that the flags of override set describe.
func (o *operator) change() (c runtime.KeyOverride, err error) {
	if o.given["max"] {
		n, err := strconv.ParseInt(o.maxText, 10, 64)
		if err != nil || n < 0 {
			return c, usagef("-max %q: write a whole number, 0 to admit nobody", o.maxText)
		}
		c.Max = &n
	}
	if o.given["window"] {
		c.Window = &o.window
	}
	if o.given["mode"] {
		if c.Mode, err = modeNamed(o.mode); err != nil {
			return c, err
		}
	}
	if o.given["enabled"] {
		on, err := strconv.ParseBool(o.enabled)
		if err != nil {
			return c, usagef("-enabled %q: write true or false", o.enabled)
		}
		c.Enabled = &on
	}
	if c == (runtime.KeyOverride{}) {
		return c, usagef("what is to change? Say -max, -window, -mode or -enabled")
	}
	return c, nil
}

func modeNamed(name string) (*runtime.Mode, error) {
	for _, mode := range []runtime.Mode{runtime.ModeEnforce, runtime.ModeSoft, runtime.ModeShadow} {
		if mode.String() == name {
			return &mode, nil
		}
	}
	return nil, usagef("-mode %q: write enforce, soft or shadow", name)
}

// setExpiry sets the expiry of an edit, by the clock of Redis. Without a flag an expiry that is set
// already stays.
func (o *operator) setExpiry(ctx context.Context, e *override.Edit) error {
	switch {
	case o.duration != 0 && o.until != "":
		return usagef("-for and -until both say when it ends: leave one out")
	case o.duration < 0:
		return usagef("-for %v: write a duration such as 1h", o.duration)
	case o.duration > 0:
		now, err := o.client.Time(ctx).Result()
		if err != nil {
			return o.explained(err)
		}
		e.Until = now.Add(o.duration + time.Second - 1).Truncate(time.Second) // no earlier
	case o.until == "never":
		e.Endless = true
	case o.until != "":
		end, err := time.Parse(time.RFC3339, o.until)
		if err != nil || !time.Now().Before(end) {
			return usagef("-until %q: write never, or a time to come, such as %s", o.until, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		}
		e.Until = end
	}
	return nil
}

// editCommand returns the command that changes the override of a key.
func editCommand(e override.Edit) func(context.Context, *operator, []string) error {
	return func(ctx context.Context, o *operator, args []string) error {
		target, err := o.keyTarget(args)
		if err != nil {
			return err
		}
		e := e
		e.Target = target
		return o.edit(ctx, e)
	}
}

// shadow counts the calls of a rule, or of one key, and refuses none.
func shadow(ctx context.Context, o *operator, args []string) error {
	mode := runtime.ModeShadow
	switch args[0] {
	case "on":
	case "off":
		mode = runtime.ModeEnforce
	default:
		return usagef("shadow %q: write on or off", args[0])
	}
	d, err := o.rule(args[1])
	if err != nil {
		return err
	}
	target := override.Target{Rule: d.Name}
	if len(args) > 2 {
		if target, err = o.keyTarget(args[1:]); err != nil {
			return err
		}
	}
	return o.edit(ctx, override.Edit{Target: target, Set: runtime.KeyOverride{Mode: &mode}})
}

// keyTarget returns the target that is one key.
func (o *operator) keyTarget(args []string) (override.Target, error) {
	d, _, key, err := o.limitNamed(args)
	if err != nil {
		return override.Target{}, err
	}
	return override.Target{Rule: d.Name, Pattern: key.Pattern(), Keys: true}, nil
}
