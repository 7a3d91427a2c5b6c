package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/printed"
)

// A command is a command of ratectl. Help, completion and the manual are made from the list
// of commands.
type command struct {
	name  string // one or two words
	args  string // as in a line of usage
	short string
	long  string
	flags []string // its own, of those that every command shares some
	needs need
	min   int // arguments
	max   int // or -1
	run   func(ctx context.Context, o *operator, args []string) error
	text  func(args []string) (string, error) // in place of run: it needs nothing
}

// A need is what a command requires.
type need uint8

const (
	needRedis need = 1 << iota
	needRules
	mayRules // it uses rules if there are some
	judges   // it needs valid overrides; other commands go on without
)

// nearShare is the share of its limit from which on a key is near it.
const nearShare = 0.8

// ownFlags are the flags of single commands.
func (o *options) ownFlags(f *flag.FlagSet, names []string) {
	for _, name := range names {
		switch name {
		case "yes":
			f.BoolVar(&o.yes, name, false, "do not ask for confirmation")
		case "n":
			f.BoolVar(&o.dry, name, false, "change nothing: print what would be changed")
		case "m":
			f.StringVar(&o.why, name, "", "`reason` of the change, for the history; who makes it is in RATECTL_WHO or USER")
		case "only":
			f.StringVar(&o.only, name, "", "remove only these `fields`, separated by commas: max, window, mode, enabled, block, allow")
		case "parts":
			f.BoolVar(&o.parts, name, false, "the arguments after RULE are the parts of the key, without escapes")
		case "overwrite":
			f.BoolVar(&o.overwrite, name, false, "replace counts that are there, though they may be newer")
		case "max":
			f.Int64Var(&o.max, name, 0, "use this `number` as the max, for rules whose calls bring their own")
		case "near":
			f.Float64Var(&o.near, name, nearShare, "`share` of the limit from which a key is near")
		case "state":
			f.StringVar(&o.filter, name, "", "only keys in these `states`, separated by commas: near, refused, held (since a peer has asked for it), blocked, broken (by another program), ok, off")
		case "limit":
			f.IntVar(&o.most, name, 100, "show the first `n` lines at most")
		case "every":
			f.DurationVar(&o.every, name, 2*time.Second, "time between two tables")
		case "count":
			f.IntVar(&o.count, name, 0, "end after `n` tables (default: 1 if standard output is no terminal, and otherwise never)")
		case "page":
			f.StringVar(&o.page, name, "", "show the rates of the live page at this `URL` (RATECTL_PAGE)")
		case "keys":
			f.StringVar(&o.pattern, name, "", "for the keys of a `pattern`, such as premium-* or one key, in place of the rule")
		case "set":
			f.StringVar(&o.maxText, "max", "", "admit `n` in a window; 0 admits nobody")
			f.DurationVar(&o.window, "window", 0, "the time that the max refers to")
			f.StringVar(&o.mode, "mode", "", "enforce, soft or shadow")
			f.StringVar(&o.enabled, "enabled", "", "`bool`, of which false removes the limit and true restores it")
		case "for":
			f.DurationVar(&o.duration, name, 0, "for how `long`; then the previous permanent value holds")
			f.StringVar(&o.until, "until", "", "`time` of expiry, as 2026-11-22T15:00:00Z, or never for none")
		case "expiry":
			f.DurationVar(&o.expiry, name, 0, "keep keys for this long (default: as long as the rule's keys may need)")
		}
	}
}

// flagSet returns the flags of a command.
func (c *command) flagSet(o *options, getenv func(string) string) *flag.FlagSet {
	f := flag.NewFlagSet("ratectl "+c.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	o.ownFlags(f, c.flags)
	if c.needs&(needRules|mayRules) != 0 {
		o.ruleFlags(f, getenv)
	}
	if c.run != nil {
		o.outputFlags(f)
	}
	if c.needs&needRedis != 0 {
		o.redisFlags(f, getenv)
	}
	return f
}

// parse returns the arguments that are no flags. Flags may stand among them, up to
// an argument --.
func parse(f *flag.FlagSet, args []string) (rest []string, err error) {
	for len(args) > 0 {
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		after := f.Args()
		if ended := len(args) - len(after); ended > 0 && args[ended-1] == "--" {
			return append(rest, after...), nil
		}
		if len(after) == 0 {
			return rest, nil
		}
		rest, args = append(rest, after[0]), after[1:]
	}
	return rest, nil
}

// run executes a command line, and returns the exit code.
func (p *program) run(ctx context.Context, args []string) int {
	out := &printed.Writer{To: p.out}
	p.out = out
	c, rest, err := find(args)
	switch {
	case err == nil && c == nil:
		fmt.Fprint(p.out, overview())
	case err == nil:
		err = p.do(ctx, c, rest)
	}
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(p.out, c.help())
		err = nil
	}
	var f failure
	switch {
	case err == nil && out.Err() != nil:
		err = fmt.Errorf("cannot print: %w", out.Err())
	case err != nil && errors.Is(ctx.Err(), context.Canceled) && !errors.As(err, &f):
		err = failure{interrupted, "interrupted: " + err.Error()}
	}
	if err != nil {
		p.report(err, args)
	}
	return codeOf(err)
}

// report prints an error, as JSON if the output was to be JSON.
func (p *program) report(err error, args []string) {
	_, chosen := cut(args)
	if last := len(chosen) - 1; last < 0 || chosen[last] != "json" {
		p.logger().Print(visible(err.Error()))
		return
	}
	encoder := json.NewEncoder(p.err)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(struct {
		Error string `json:"error"`
		Code  int    `json:"exit_code"`
	}{err.Error(), codeOf(err)})
}

// do parses the rest of the command line and runs a command.
func (p *program) do(ctx context.Context, c *command, args []string) error {
	o := &operator{program: p, options: &options{given: make(map[string]bool), near: nearShare}}
	f := c.flagSet(o.options, p.getenv)
	args, err := parse(f, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return usagef("%v; ratectl %s -h lists the flags", err, c.name)
	case len(args) < c.min || c.max >= 0 && len(args) > c.max && !o.parts:
		return usagef("usage: ratectl %s %s; ratectl %[1]s -h says more", c.name, c.args)
	case c.run != nil && o.format != "table" && o.format != "json":
		return usagef("-o %q: write table or json", o.format)
	}
	f.Visit(func(f *flag.Flag) { o.given[f.Name] = true })
	if c.needs != 0 {
		if err := p.enter(f, o.context, o.given); err != nil {
			return err
		}
	}
	if o.most < 0 || o.max < 0 || o.given["max"] && o.max == 0 && slices.Contains(c.flags, "max") {
		return usagef("-max is 1 or more, and -limit not negative")
	}
	if c.text != nil {
		text, err := c.text(args)
		fmt.Fprint(p.out, text)
		return err
	}
	if c.needs&needRules != 0 && o.page == "" || c.needs&mayRules != 0 && o.rules != "" {
		if isPage(o.rules) {
			o.known, err = o.rulesOfPage(ctx)
		} else {
			o.known, err = p.readListing(o.rules)
		}
		if err != nil {
			return err
		}
	}
	if o.page == "" && o.context == "" && slices.Contains(c.flags, "page") {
		o.page = p.getenv("RATECTL_PAGE")
	}
	if c.needs&needRedis != 0 && o.page == "" {
		defer o.close()
		if err := o.open(ctx, c.needs&judges != 0); err != nil {
			return err
		}
	}
	return c.run(ctx, o, args)
}
