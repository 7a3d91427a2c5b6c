package main

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// rule returns the rule that has a name or a prefix.
func (s *session) rule(name string) (operate.Rule, error) {
	var found []operate.Rule
	for _, d := range s.Rules {
		if d.Prefix == name {
			return d, nil
		}
		same := func(f operate.Rule) bool { return f.Prefix == d.Prefix }
		if d.Name == name && !slices.ContainsFunc(found, same) {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return operate.Rule{}, usagef("no rule has the name %q%s; ratectl rules lists them", name, suggest(name, s.ruleNames()))
	}
	return operate.Rule{}, usagef("%d rules have the name %q, at %s and %s: name the one by its prefix, such as %q",
		len(found), name, found[0].Place, found[1].Place, found[0].Prefix)
}

func (s *session) ruleNames() (names []string) {
	for _, d := range s.Rules {
		names = append(names, d.Name)
	}
	return names
}

// keyNamed returns the rule that the first argument names, and the key that the others name.
func (s *session) keyNamed(args []string) (d operate.Rule, key *runtime.Key, err error) {
	if d, err = s.rule(args[0]); err != nil {
		return d, nil, err
	}
	args = args[1:]
	text := ""
	if len(args) == 1 && !s.parts {
		text = args[0]
		if whole := bridge.LimiterOf(s.Limiter).KeysOf(d.Rule); strings.HasPrefix(text, whole.Prefix) {
			rest, is := whole.Text(text)
			if !is {
				return d, nil, usagef("%q is no key of %s: it counts by another algorithm", text, d.Name)
			}
			text, args = rest, []string{rest}
		}
	}
	if strings.HasSuffix(text, "*") { // no call has that key
		return d, nil, usagef("%q would be one key, and not all that begin so: write ratectl override set %s -keys '%s' with -max 0 or -enabled false, or %%2A for a * in a key", text, d.Name, text)
	}
	key = runtime.NewKey()
	switch {
	case s.parts:
		for _, part := range args {
			key.AddString(part)
		}
	case len(args) == 1:
		if key, err = rule.ParseKey(text); err != nil {
			return d, nil, usagef("%q is no key of %s: %v; with -parts a key is given as it is, without escapes", text, d.Name, err)
		}
	case len(args) > 1:
		return d, nil, usagef("a KEY is one argument, its parts joined by colons; or give the parts as they are with -parts")
	}
	return d, key, s.fits(d, key, args)
}

// fits returns an error if a key has not as many parts as the rule's keys.
func (s *session) fits(d operate.Rule, key *runtime.Key, args []string) error {
	text := key.String()
	n := len(args)
	if !s.parts && n == 1 {
		n = 1 + strings.Count(text, ":")
	}
	parts := strings.Join(d.Parts, ",")
	switch {
	case d.AnyKey && len(args) == 0: // else everybody would be blocked, and nobody is
		return usagef("the rules of a live page do not say whose limit %s is: name the KEY, as ratectl keys %s shows it, or write \"\" if all callers share one", d.Name, d.Name)
	case d.AnyKey, strings.HasPrefix(text, "%sha256-") || n == len(d.Parts) || text == "" && len(d.Parts) == 0:
		return nil
	case len(d.Parts) == 0:
		return usagef("rule %s has one limit for all callers: leave the KEY out", d.Name)
	case s.parts && n != 0:
		return usagef("the keys of rule %s are %s: give %d parts, not %d", d.Name, parts, len(d.Parts), n)
	case n == 0:
		return usagef("rule %s has a limit for each %s: name the KEY", d.Name, parts)
	}
	return usagef("the number of parts of a key of rule %s (%s) is %d, and not %d as in %q: write a colon within a part as %%3A, or give the parts with -parts",
		d.Name, parts, len(d.Parts), n, text)
}

// fitsPattern returns an error if a rule has no key that a pattern is for.
func (s *session) fitsPattern(d operate.Rule, pattern string) error {
	has, wild := strings.Count(pattern, ":")+1, strings.HasSuffix(pattern, "*")
	parts := strings.Join(d.Parts, ",")
	switch {
	case pattern == "":
		return usagef("-keys is empty: a variable that is not set? Leave it out for the rule itself")
	case d.AnyKey || strings.HasPrefix(pattern, "%sha256-") || has == len(d.Parts) || wild && (has < len(d.Parts) || pattern == "*"):
		return nil
	case len(d.Parts) == 0:
		return usagef("rule %s has one limit for all callers: leave -keys out", d.Name)
	default:
		return usagef("-keys %s: the keys of rule %s are %s, joined by colons: %d parts, and not %d", pattern, d.Name, parts, len(d.Parts), has)
	}
}

// unlikely returns why calls may have no key like that of a target for which nothing is
// counted, or nothing.
func (s *session) unlikely(ctx context.Context, t override.Target) (string, error) {
	d, err := s.rule(t.Rule)
	key, invalid := rule.ParseKey(t.Pattern)
	if !t.Keys || strings.HasSuffix(t.Pattern, "*") || err != nil || invalid != nil {
		return "", nil
	}
	for part := range strings.SplitSeq(t.Pattern, ":") {
		text, _ := url.PathUnescape(part)
		if why := notAsCounted(text); why != "" {
			n, err := s.Client.Exists(ctx, bridge.LimiterOf(s.Limiter).RedisKey(s.LimitOf(d, key))).Result()
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
	if network, err := netip.ParsePrefix(part); err == nil {
		masked := network.Masked()
		switch {
		case network.Addr().Is4():
			return fmt.Sprintf("%s is a network, and callers of IPv4 are counted by address", part)
		case masked.String() != part:
			return fmt.Sprintf("%s is written as %s in keys", part, masked)
		}
	}
	switch {
	case err != nil:
		return ""
	case addr.Unmap().WithZone("").String() != part:
		return fmt.Sprintf("%s is written as %s in keys", part, addr.Unmap().WithZone(""))
	case addr.Is6():
		network, _ := addr.Prefix(56)
		return fmt.Sprintf("%s is one address, and callers of IPv6 are counted by network, such as %s", part, network)
	}
	return ""
}
