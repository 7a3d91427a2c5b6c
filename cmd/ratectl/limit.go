package main

import (
	"strings"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// keyNamed returns the rule that the first argument names, and the key that the others name.
func (s *session) keyNamed(args []string) (d operate.Rule, key *runtime.Key, err error) {
	if d, err = s.Rule(args[0]); err != nil {
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
	if s.parts {
		for _, part := range args {
			key.AddString(part)
		}
	} else if len(args) == 1 {
		if key, err = rule.ParseKey(text); err != nil {
			return d, nil, usagef("%q is no key of %s: %v; with -parts a key is given as it is, without escapes", text, d.Name, err)
		}
	} else if len(args) > 1 {
		return d, nil, usagef("a KEY is one argument, its parts joined by colons; or give the parts as they are with -parts")
	}
	n := len(args)
	if d.AnyKey && n == 0 { // else everybody would be blocked, and nobody is
		return d, nil, usagef("the rules of a live page do not say whose limit %s is: name the KEY, as ratectl keys %s shows it, or write \"\" if all callers share one", d.Name, d.Name)
	}
	if n == 1 && !s.parts {
		n += strings.Count(key.String(), ":")
	}
	return d, key, d.Fits(key, n)
}
