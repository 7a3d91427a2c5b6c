package main

import (
	"cmp"
	"context"
	"maps"
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
	d, err := c.rule(args[0])
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
	keys, err := c.Core.Keys(ctx, d, wanted, c.limit)
	if err != nil {
		return err
	}
	if keys.Total == 0 {
		return c.noKeys(ctx, d)
	}
	c.differences(ctx, d.Name)
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

// noKeys returns an error that says under which other namespaces a rule has keys.
func (s *session) noKeys(ctx context.Context, d operate.Rule) error {
	others, err := s.otherNamespaces(ctx, d)
	if err != nil {
		return err
	}
	where := "there is none in any other either: no call is counted now"
	if len(others) > 0 {
		where = "there are some in " + namespaces(others...)
	}
	return nothingf("no key of rule %s in %s: %s", d.Name, namespaces(s.Namespace), where)
}

// wrongNamespace returns an error if none of some rules, which have no keys, has any but in other
// namespaces. It looks for a few of them.
func (s *session) wrongNamespace(ctx context.Context, rules []operate.Rule) error {
	for _, d := range rules[:min(len(rules), 20)] {
		if others, err := s.otherNamespaces(ctx, d); err != nil || len(others) > 0 {
			return cmp.Or(err, nothingf("no rule has a key in %s: those of %s are in %s", namespaces(s.Namespace), d.Name, namespaces(others...)))
		}
	}
	return nil
}

// otherNamespaces returns the other namespaces in which a rule has keys, ten at most.
func (s *session) otherNamespaces(ctx context.Context, d operate.Rule) ([]string, error) {
	seen := make(map[string]bool)
	err := s.Scan(ctx, []string{"*" + operate.Literally.Replace(d.Prefix) + "*"}, surveyBatch, func(key string) {
		if before, _, _ := strings.Cut(key, d.Prefix); before != s.Namespace+":" && len(seen) < 10 {
			seen[strings.TrimSuffix(before, ":")] = true
		}
	})
	return slices.Sorted(maps.Keys(seen)), err
}

// namespaces names namespaces.
func namespaces(names ...string) string {
	for i, name := range names {
		names[i] = `the namespace "` + printable(name) + `"`
		if name == "" {
			names[i] = "no namespace"
		}
	}
	return strings.Join(names, ", ")
}
