package operate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/nearest"
	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

func (c *Core) Rule(name string) (Rule, error) {
	var found []Rule
	for _, d := range c.Rules {
		if d.prefix() == name {
			return d, nil
		}
		same := func(f Rule) bool { return f.prefix() == d.prefix() }
		if d.Name == name && !slices.ContainsFunc(found, same) {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Rule{}, Wrongf("no rule has the name %q%s; ratectl rules lists them", name, nearest.Hint(name, c.Names()))
	}
	return Rule{}, Wrongf("%d rules have the name %q, at %s and %s: name the one by its prefix, such as %q",
		len(found), name, found[0].Place, found[1].Place, found[0].prefix())
}

// prefix is what the keys of the rule start with behind the namespace, also where it declares none.
func (r Rule) prefix() string { return spec.Prefix(r.Prefix, r.Name) }

// Fits returns an error if keys of the rule have not as many parts as a key; 0: that is empty.
func (r Rule) Fits(key *runtime.Key, n int) error {
	text, parts := key.String(), strings.Join(r.Parts, ",")
	if r.AnyKey || strings.HasPrefix(text, "%sha256-") || n == len(r.Parts) || text == "" && len(r.Parts) == 0 {
		return nil
	}
	if len(r.Parts) == 0 {
		return Wrongf("rule %s has one limit for all callers: leave the KEY out", r.Name)
	}
	if n == 0 {
		return Wrongf("rule %s has a limit for each %s: name the KEY", r.Name, parts)
	}
	return Wrongf("the number of parts of a key of rule %s (%s) is %d, and not %d as in %q: write a colon within a part as %%3A, or give the parts with -parts",
		r.Name, parts, len(r.Parts), n, text)
}

// FitsPattern returns an error if the rule has no key that a pattern is for.
func (r Rule) FitsPattern(pattern string) error {
	has, wild := strings.Count(pattern, ":")+1, strings.HasSuffix(pattern, "*")
	parts := strings.Join(r.Parts, ",")
	if pattern == "" {
		return Wrongf("-keys is empty: a variable that is not set? Leave it out for the rule itself")
	}
	if r.AnyKey || strings.HasPrefix(pattern, "%sha256-") || has == len(r.Parts) || wild && (has < len(r.Parts) || pattern == "*") {
		return nil
	}
	if len(r.Parts) == 0 {
		return Wrongf("rule %s has one limit for all callers: leave -keys out", r.Name)
	}
	return Wrongf("-keys %s: the keys of rule %s are %s, joined by colons: %d parts, and not %d", pattern, r.Name, parts, len(r.Parts), has)
}

// Unlikely returns why calls may have no key like that of a target for which nothing is
// counted, or nothing.
func (c *Core) Unlikely(ctx context.Context, t override.Target) (string, error) {
	r, err := c.Rule(t.Rule)
	key, invalid := rule.ParseKey(t.Pattern)
	if !t.Keys || strings.HasSuffix(t.Pattern, "*") || err != nil || invalid != nil {
		return "", nil
	}
	for part := range strings.SplitSeq(t.Pattern, ":") {
		text, _ := url.PathUnescape(part)
		if why := notAsCounted(text); why != "" {
			n, err := c.Client.Exists(ctx, bridge.LimiterOf(c.Limiter).RedisKey(c.LimitOf(r, key))).Result()
			if n > 0 {
				why = ""
			}
			return why, err
		}
	}
	return "", nil
}

// notAsCounted returns why the key of a call has no such part, if it is that of an address.
func notAsCounted(part string) string {
	addr, err := netip.ParseAddr(part)
	if port, err := netip.ParseAddrPort(part); err == nil {
		return fmt.Sprintf("%s has a port, and callers are counted by address: %s", part, port.Addr())
	}
	network, none := netip.ParsePrefix(part)
	if none == nil && network.Addr().Is4() {
		return fmt.Sprintf("%s is a network, and callers of IPv4 are counted by address", part)
	}
	if none == nil && network.Masked().String() != part {
		return fmt.Sprintf("%s is written as %s in keys", part, network.Masked())
	}
	if err != nil {
		return ""
	}
	if addr.Unmap().WithZone("").String() != part {
		return fmt.Sprintf("%s is written as %s in keys", part, addr.Unmap().WithZone(""))
	}
	if addr.Is6() {
		network, _ := addr.Prefix(56)
		return fmt.Sprintf("%s is one address, and callers of IPv6 are counted by network, such as %s", part, network)
	}
	return ""
}

// ScanBatch is how many keys a SCAN of a survey goes over.
const ScanBatch = 200

// prefix is what the keys of all rules without a prefix of their own start with.
func (c *Core) prefix() string {
	if c.Namespace != "" {
		return c.Namespace + ":rate_limit:"
	}
	return "rate_limit:"
}

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
	err := c.Scan(ctx, []string{"*" + Literally.Replace(r.prefix()) + "*"}, ScanBatch, func(key string) {
		if before, _, _ := strings.Cut(key, r.prefix()); before != c.Namespace+":" && len(seen) < 10 {
			seen[strings.TrimSuffix(before, ":")] = true
		}
	})
	return slices.Sorted(maps.Keys(seen)), err
}

func Namespaces(names ...string) string {
	for i, name := range names {
		names[i] = `the namespace "` + printed.Text(name) + `"`
		if name == "" {
			names[i] = "no namespace"
		}
	}
	return strings.Join(names, ", ")
}
