package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/buildversion"
	"github.com/rategen/rategen/internal/nearest"
	"github.com/rategen/rategen/internal/printed"
)

// groups are what the commands of two words do, by the first.
var groups = map[string]string{"override": "list and change overrides", "ledger": "list and restore what was used"}

func (p *program) tree() *cli.Command {
	root := p.group("ratectl")
	root.Version, root.HideHelpCommand = buildversion.Version(), true
	root.Reader, root.Writer, root.ErrWriter = p.in, p.out, p.err
	root.EnableShellCompletion, root.ShellCompletionCommandName = true, libraryScripts
	root.ExitErrHandler = func(context.Context, *cli.Command, error) {} // the exit code is that of run
	for _, c := range commands() {
		leaf, into := p.leaf(c), root
		if first, second, two := strings.Cut(leaf.Name, " "); two {
			if into = root.Command(first); into == nil {
				into = p.group(first)
				into.Usage = groups[first]
				root.Commands = append(root.Commands, into)
			}
			leaf.Name = second
		}
		into.Commands = append(into.Commands, leaf)
	}
	return root
}

func (p *program) group(name string) *cli.Command {
	return &cli.Command{Name: name, ShellComplete: completeCommands, OnUsageError: usageError, Action: func(_ context.Context, c *cli.Command) error {
		return unknownCommand(strings.TrimSpace(strings.TrimPrefix(c.FullName()+" "+c.Args().First(), "ratectl ")))
	}}
}

func (p *program) leaf(c command) *cli.Command {
	s := newSession(p)
	if strings.Contains(c.flags, "parts") {
		c.long += " " + aboutKeys
	}
	return &cli.Command{
		Name: c.name, Usage: c.short, ArgsUsage: c.args, Description: c.long, Flags: s.flagsOf(c),
		OnUsageError: usageError, ShellComplete: func(_ context.Context, flags *cli.Command) { s.complete(c, flags) },
		Action: func(ctx context.Context, flags *cli.Command) error {
			s.flags, p.began = flags, true
			defer s.Close()
			err, doubt := s.prepare(ctx, c), error(nil)
			if err == nil && c.needs&doubts != 0 {
				doubt = s.Doubt(ctx)
			}
			if err == nil && c.needs&misses != 0 {
				s.WarnEvicted(ctx)
			}
			if err == nil {
				err = c.run(s, ctx, flags.Args().Slice())
			}
			if code := codeOf(err); doubt != nil && (code == done || code == nothing) {
				err = doubt
			}
			return s.explained(err)
		},
	}
}

// usageError returns the error of the library's about flags, with a remedy.
func usageError(_ context.Context, c *cli.Command, err error, _ bool) error {
	hint := ""
	if _, name, unknown := strings.Cut(err.Error(), "not defined: -"); unknown {
		hint = nearest.Hint("-"+strings.TrimLeft(name, "-"), flagNames(c.Flags))
	}
	return usagef("%v%s; %s -h lists the flags", err, hint, c.FullName())
}

// prepare does what a command needs before it runs.
func (s *session) prepare(ctx context.Context, c command) (err error) {
	n := s.flags.NArg()
	if n < c.min || c.max >= 0 && n > c.max && !s.parts {
		return usagef("usage: ratectl %s; ratectl %s -h says more", c.usage(), c.name)
	}
	if c.needs&prints != 0 && s.format != "table" && s.format != "json" {
		return usagef("-o %q: write table or json", s.format)
	}
	if s.config.err != nil {
		return s.config.err
	}
	if c.needs&replays != 0 && (n > 1 || c.needs&mayRedis == 0) && slices.Contains(s.unsaid, "rules") {
		s.rules = "" // a variable of the environment changes no question
	}
	if c.needs&needRules != 0 && s.page == "" || c.needs&mayRules != 0 && s.rules != "" {
		if s.Rules, err = s.listed(ctx); err != nil {
			return err
		}
	}
	if c.needs&needRedis == 0 || s.page != "" {
		return nil
	}
	return s.open(ctx, c.needs&judges != 0)
}

// run executes a command line, and returns the exit code. An error is printed as JSON if the output
// was to be JSON.
func (p *program) run(ctx context.Context, args []string) int {
	out := &printed.Writer{To: p.out}
	p.out = out
	tree := p.tree()
	l := cut(tree, args)
	ordered, err := l.inOrder(tree, args)
	if err == nil {
		err = tree.Run(ctx, append([]string{tree.Name}, ordered...))
	}
	code := codeOf(err)
	switch {
	case code != done && code != failed:
	case err != nil && !p.began: // the library's own, of what a context or the environment says
		err = usagef("%v", err)
	case out.Err() != nil:
		err = fmt.Errorf("cannot print: %w", out.Err())
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		err = failure{interrupted, "interrupted: " + err.Error()}
	}
	if err != nil && l.format == "json" {
		_ = encoderTo(p.err).Encode(struct {
			Error string `json:"error"`
			Code  int    `json:"exit_code"`
		}{err.Error(), codeOf(err)})
	} else if err != nil {
		p.logger().Print(visible(err.Error()))
	}
	return codeOf(err)
}

// A line is what can be said of a command line before its command is known.
type line struct {
	words  []int  // places of the arguments that are no flags, up to an argument --
	format string // what -o says
	odd    string // an argument that is no flag, and looks like one
}

// cut reads a command line. A flag of one name takes a value in all commands or in none.
func cut(tree *cli.Command, args []string) (l line) {
	takes := make(map[string]bool) // a value, by the names of flags
	_ = tree.Walk(func(c *cli.Command) error {
		for _, f := range c.Flags {
			takes[f.Names()[0]] = f.(cli.DocGenerationFlag).TakesValue()
		}
		return nil
	})
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		arg := args[i]
		if len(arg) < 2 || arg[0] != '-' {
			l.words = append(l.words, i)
			continue
		}
		if r, _ := utf8.DecodeRuneInString(arg[1:]); r != '-' && !unicode.IsLetter(r) {
			l.odd = arg
		}
		name, value, has := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !has && takes[name] && i+1 < len(args) {
			i++
			value = args[i]
		}
		if name == "o" {
			l.format = value
		}
	}
	return l
}

// inOrder returns the arguments with the words of the command first, as the library has
// them: here flags may stand before and among these.
func (l line) inOrder(tree *cli.Command, args []string) ([]string, error) {
	has := func(names ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(names, a) })
	}
	switch {
	case len(l.words) > 0:
	case has(completionFlag):
		return args, nil
	case has("-h", "-help", "--help"):
		return []string{"-h"}, nil
	case has("-v", "-version", "--version"):
		return []string{"-version"}, nil
	default:
		return nil, usagef("name a command; ratectl -h lists them")
	}
	if l.odd != "" { // the library would take it and all after it for arguments
		return nil, usagef("flag provided but not defined: %s; ratectl %s -h lists the flags, and -- ends them", l.odd, args[l.words[0]])
	}
	c, n := tree.Command(args[l.words[0]]), 1
	if c == nil {
		return nil, unknownCommand(args[l.words[0]])
	}
	if len(c.Commands) > 0 {
		n = min(2, len(l.words))
	}
	var first, rest []string
	for i, arg := range args {
		if slices.Contains(l.words[:n], i) {
			first = append(first, arg)
		} else {
			rest = append(rest, arg)
		}
	}
	return append(first, rest...), nil
}
