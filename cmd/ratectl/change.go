package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// editsKey returns a command that changes the override of one key in one way.
func editsKey(e override.Edit) func(*session, context.Context, []string) error {
	return func(s *session, ctx context.Context, args []string) (err error) {
		if e.Target, err = s.keyTarget(args); err != nil {
			return err
		}
		return s.edit(ctx, e)
	}
}

// keyTarget returns the target that is one key.
func (s *session) keyTarget(args []string) (override.Target, error) {
	d, key, err := s.keyNamed(args)
	if err != nil {
		return override.Target{}, err
	}
	return override.Target{Rule: d.Name, Pattern: key.Pattern(), Keys: true}, nil
}

// shadow counts the calls of a rule, or of one key, and refuses none.
func (s *session) shadow(ctx context.Context, args []string) error {
	mode, is := map[string]runtime.Mode{"on": runtime.ModeShadow, "off": runtime.ModeEnforce}[args[0]]
	if !is {
		return usagef("shadow %q: write on or off", args[0])
	}
	d, err := s.rule(args[1])
	if err != nil {
		return err
	}
	target := override.Target{Rule: d.Name}
	if len(args) > 2 {
		if target, err = s.keyTarget(args[1:]); err != nil {
			return err
		}
	}
	return s.edit(ctx, override.Edit{Target: target, Set: runtime.KeyOverride{Mode: &mode}})
}

// setOverride changes an override as the flags say.
func (s *session) setOverride(ctx context.Context, args []string) error {
	e := override.Edit{Target: s.target(args[0])}
	if e.Rule != override.All {
		d, err := s.rule(args[0])
		if err != nil {
			return err
		}
		e.Rule = d.Name // it may be named by its prefix
		if e.Keys {
			if err := s.fitsPattern(d, s.pattern); err != nil {
				return err
			}
		}
	}
	if s.given("max") {
		n, err := strconv.ParseInt(s.maxText, 10, 64)
		if err != nil || n < 0 {
			return usagef("-max %q: write a whole number, 0 to admit nobody", s.maxText)
		}
		e.Set.Max = &n
	}
	if s.given("window") {
		e.Set.Window = &s.window
	}
	if s.given("mode") {
		mode, is := map[string]runtime.Mode{"enforce": runtime.ModeEnforce, "soft": runtime.ModeSoft, "shadow": runtime.ModeShadow}[s.mode]
		if !is {
			return usagef("-mode %q: write enforce, soft or shadow", s.mode)
		}
		e.Set.Mode = &mode
	}
	if s.given("enabled") {
		on, err := strconv.ParseBool(s.enabled)
		if err != nil {
			return usagef("-enabled %q: write true or false", s.enabled)
		}
		e.Set.Enabled = &on
	}
	if e.Set == (runtime.KeyOverride{}) {
		return usagef("what is to change? Say -max, -window, -mode or -enabled")
	}
	return s.edit(ctx, e)
}

// target returns what an argument and -keys name.
func (s *session) target(rule string) override.Target {
	return override.Target{Rule: rule, Pattern: s.pattern, Keys: s.given("keys")}
}

// removeOverride takes an override or some of its fields away, also that of a rule which has gone.
func (s *session) removeOverride(ctx context.Context, args []string) error {
	e := override.Edit{Target: s.target(args[0]), Remove: true}
	if s.given("only") {
		e.Remove, e.Clear = false, strings.Split(s.only, ",")
	}
	return s.edit(ctx, e)
}
