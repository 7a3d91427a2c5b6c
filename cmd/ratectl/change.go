package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// change returns what the flags of override set say.
func (o *operator) change() (c override.Change, err error) {
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
	if c.KeyOverride == (runtime.KeyOverride{}) {
		return c, usagef("what is to change? Say -max, -window, -mode or -enabled")
	}
	return c, nil
}

func modeNamed(name string) (*runtime.Mode, error) {
	for _, mode := range []runtime.Mode{runtime.Enforce, runtime.Shadow} {
		if mode.String() == name {
			return &mode, nil
		}
	}
	return nil, usagef("-mode %q: write enforce or shadow", name)
}

// end returns when an override is to end, by the clock of Redis.
func (o *operator) end(ctx context.Context) (time.Time, error) {
	switch {
	case o.duration != 0 && o.until != "":
		return time.Time{}, usagef("-for and -until both say when it ends: leave one out")
	case o.duration < 0:
		return time.Time{}, usagef("-for %v: write a duration such as 1h", o.duration)
	case o.duration > 0:
		now, err := o.client.Time(ctx).Result()
		if err != nil {
			return time.Time{}, o.explained(err)
		}
		return now.Add(o.duration + time.Second - 1).Truncate(time.Second), nil // no earlier
	case o.until != "":
		end, err := time.Parse(time.RFC3339, o.until)
		if err != nil || !time.Now().Before(end) {
			return time.Time{}, usagef("-until %q: write a time to come, such as %s", o.until, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		}
		return end, nil
	}
	return time.Time{}, nil
}

// block admits no call of a key, whatever else is said of its rule.
func block(ctx context.Context, o *operator, args []string) error {
	return o.setKey(ctx, args, runtime.KeyOverride{Enabled: new(true), Max: new(int64(0)), Mode: new(runtime.Enforce)})
}

// allow takes the limit away from a key.
func allow(ctx context.Context, o *operator, args []string) error {
	return o.setKey(ctx, args, runtime.KeyOverride{Enabled: new(false)})
}

func (o *operator) setKey(ctx context.Context, args []string, c runtime.KeyOverride) error {
	target, _, err := o.keyTarget(args)
	if err != nil {
		return err
	}
	return o.set(ctx, target, override.Change{KeyOverride: c})
}

// unblock takes away what block and allow have set. A block by the rule itself
// ends with a reset.
func unblock(ctx context.Context, o *operator, args []string) error {
	target, _, err := o.keyTarget(args)
	if err != nil {
		return err
	}
	entries, err := o.entries(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Target != target {
			continue
		}
		blocked, allowed := e.Max != nil && *e.Max == 0, e.Enabled != nil && !*e.Enabled
		if !blocked && !allowed {
			return nothingf("%s has the override %v, which neither blocks nor allows it; ratectl override rm takes it away", target.Pattern, e.Change)
		}
		return o.remove(ctx, target)
	}
	return nothingf("%s of rule %s is neither blocked nor allowed by an override; if the rule itself blocks it, ratectl reset ends that", printable(target.Pattern), target.Rule)
}

// shadow counts the calls of a rule, or of one key, and refuses none.
func shadow(ctx context.Context, o *operator, args []string) error {
	mode := runtime.Shadow
	switch args[0] {
	case "on":
	case "off":
		mode = runtime.Enforce
	default:
		return usagef("shadow %q: write on or off", args[0])
	}
	d, err := o.rule(args[1])
	if err != nil {
		return err
	}
	target := override.Target{Rule: d.Name}
	if len(args) > 2 {
		if target, _, err = o.keyTarget(args[1:]); err != nil {
			return err
		}
	}
	return o.set(ctx, target, override.Change{KeyOverride: runtime.KeyOverride{Mode: &mode}})
}

// keyTarget returns the target that is one key.
func (o *operator) keyTarget(args []string) (override.Target, declared, error) {
	d, _, key, err := o.limitNamed(args)
	if err != nil {
		return override.Target{}, d, err
	}
	if strings.HasPrefix(key.String(), "%sha256-") {
		return override.Target{}, d, usagef("an override cannot name a key by its hash: give the KEY as it was before it was cut")
	}
	return override.Target{Rule: d.Name, Pattern: key.Pattern(), Keys: true}, d, nil
}
