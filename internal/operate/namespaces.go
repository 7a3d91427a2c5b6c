package operate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/rategen/rategen/internal/printed"
)

// ScanBatch is how many keys a SCAN of a survey goes over.
const ScanBatch = 200

// prefix is what the keys of all rules without a prefix of their own start with.
func (c *Core) prefix() string {
	if c.Namespace != "" {
		return c.Namespace + ":rate_limit:"
	}
	return "rate_limit:"
}

// Names returns the names of the rules.
func (c *Core) Names() (names []string) {
	for _, r := range c.Rules {
		names = append(names, r.Name)
	}
	return names
}

// NoKeys returns an error that says under which other namespaces a rule has keys.
func (c *Core) NoKeys(ctx context.Context, r Rule) error {
	others, err := c.otherNamespaces(ctx, r)
	if err != nil {
		return err
	}
	where := "there is none in any other either: no call is counted now"
	if len(others) > 0 {
		where = "there are some in " + Namespaces(others...)
	}
	return Nothingf("no key of rule %s in %s: %s", r.Name, Namespaces(c.Namespace), where)
}

// WrongNamespace returns an error if none of some rules, which have no keys, has any but in other
// namespaces. It looks for a few of them.
func (c *Core) WrongNamespace(ctx context.Context, rules []Rule) error {
	for _, r := range rules[:min(len(rules), 20)] {
		if others, err := c.otherNamespaces(ctx, r); err != nil || len(others) > 0 {
			return cmp.Or(err, Nothingf("no rule has a key in %s: those of %s are in %s", Namespaces(c.Namespace), r.Name, Namespaces(others...)))
		}
	}
	return nil
}

// otherNamespaces returns the other namespaces in which a rule has keys, ten at most.
func (c *Core) otherNamespaces(ctx context.Context, r Rule) ([]string, error) {
	seen := make(map[string]bool)
	err := c.Scan(ctx, []string{"*" + Literally.Replace(r.Prefix) + "*"}, ScanBatch, func(key string) {
		if before, _, _ := strings.Cut(key, r.Prefix); before != c.Namespace+":" && len(seen) < 10 {
			seen[strings.TrimSuffix(before, ":")] = true
		}
	})
	return slices.Sorted(maps.Keys(seen)), err
}

// Namespaces names namespaces.
func Namespaces(names ...string) string {
	for i, name := range names {
		names[i] = `the namespace "` + printed.Text(name) + `"`
		if name == "" {
			names[i] = "no namespace"
		}
	}
	return strings.Join(names, ", ")
}
