package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"
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
	if d.byCall != "" && c.max == 0 && c.filter != "" {
		return usagef("calls of rule %s bring a max of their own, %s: say with -max which one to judge by", d.Name, d.byCall)
	}
	top, matched, total, err := c.keysOf(ctx, d, wanted, c.limit)
	if err != nil {
		return err
	}
	if total == 0 {
		return c.noKeys(ctx, d)
	}
	if err := printEach(&c.printer, keyHead, top, keyState.row); err != nil {
		return err
	}
	if len(top) < matched {
		c.logger().Printf("these are the first %d of %d keys, see -limit and -state", len(top), matched)
	}
	return nil
}

// keyHead are the headings of keys.
const keyHead = "KEY STATE USED RETRY RESET"

// wantedStates returns the states that a filter names: all if it is empty.
func wantedStates(filter string) ([]string, error) {
	if filter == "" {
		return states, nil
	}
	wanted := strings.Split(filter, ",")
	for _, state := range wanted {
		if !slices.Contains(states, state) {
			return nil, usagef("-state %q: write some of %s, separated by commas", state, strings.Join(states, ", "))
		}
	}
	return wanted, nil
}

// noKeys returns an error that says under which other namespaces a rule has keys.
func (s *session) noKeys(ctx context.Context, d declared) error {
	others, err := s.otherNamespaces(ctx, d)
	if err != nil {
		return err
	}
	where := "there is none in any other either: no call is counted now"
	if len(others) > 0 {
		where = "there are some in " + namespaces(others...)
	}
	return nothingf("no key of rule %s in %s: %s", d.Name, namespaces(s.namespace), where)
}

// wrongNamespace returns an error if none of some rules, which have no keys, has any but in other
// namespaces. It looks for a few of them.
func (s *session) wrongNamespace(ctx context.Context, rules []declared) error {
	for _, d := range rules[:min(len(rules), 20)] {
		if others, err := s.otherNamespaces(ctx, d); err != nil || len(others) > 0 {
			return cmp.Or(err, nothingf("no rule has a key in %s: those of %s are in %s", namespaces(s.namespace), d.Name, namespaces(others...)))
		}
	}
	return nil
}

// otherNamespaces returns the other namespaces in which a rule has keys, ten at most.
func (s *session) otherNamespaces(ctx context.Context, d declared) ([]string, error) {
	seen := make(map[string]bool)
	err := s.scan(ctx, []string{"*" + literally.Replace(d.Prefix) + "*"}, surveyBatch, func(key string) {
		if before, _, _ := strings.Cut(key, d.Prefix); before != s.namespace+":" && len(seen) < 10 {
			seen[strings.TrimSuffix(before, ":")] = true
		}
	})
	return slices.Sorted(maps.Keys(seen)), err
}

// scan calls each with every key in Redis that fits one of some patterns, and with some twice.
func (s *server) scan(ctx context.Context, patterns []string, batch int64, each func(key string)) error {
	var mu sync.Mutex
	return s.masters(ctx, func(ctx context.Context, server *redis.Client) error {
		for _, pattern := range patterns {
			for cursor, more := uint64(0), true; more; more = cursor != 0 {
				keys, next, err := server.Scan(ctx, cursor, pattern, batch).Result()
				if err != nil {
					return err
				}
				mu.Lock()
				for _, key := range keys {
					each(key)
				}
				mu.Unlock()
				cursor = next
			}
		}
		return nil
	})
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

// literally escapes what has a meaning in a pattern of SCAN.
var literally = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)
