package main

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A memoryLine is what is found of the keys of a rule, or with a prefix.
type memoryLine struct {
	Rule    string `json:"rule,omitempty"`
	Prefix  string `json:"prefix"`
	Keys    int64  `json:"keys"`
	Bytes   int64  `json:"bytes"`
	Endless int64  `json:"endless"` // without an expiry
	Healed  int64  `json:"healed"`
}

func (l memoryLine) row() []string {
	n := func(i int64) string { return strconv.FormatInt(i, 10) }
	return []string{n(l.Keys), n(l.Bytes), n(l.Endless), n(l.Healed), cmp.Or(l.Rule, printable(l.Prefix))}
}

// memory counts the keys of rules, and the memory that they take.
func memory(ctx context.Context, o *operator, args []string) error {
	lines, err := o.survey(ctx, args, 0, false)
	if lines == nil {
		return err // not one key was looked at
	}
	if printed := printEach(o, "KEYS BYTES ENDLESS HEALED RULE", lines, memoryLine.row); err == nil {
		err = printed
	}
	return err
}

// fixExpiry gives keys without an expiry one.
func fixExpiry(ctx context.Context, o *operator, args []string) error {
	if o.expiry < 0 || len(args) > 0 && o.expiry == 0 {
		return usagef("say with -expiry how long the keys of a PREFIX may live on, longer than any window: -expiry 48h, for instance")
	}
	lines, err := o.survey(ctx, args, 0, false)
	if err != nil {
		return err
	}
	endless := int64(0)
	for _, l := range lines {
		endless += l.Endless
	}
	if endless > 0 && !o.dry {
		if err := o.confirm(ctx, "give %d keys an expiry", endless); err != nil {
			return err
		}
		lines, err = o.survey(ctx, args, o.expiry, true)
	}
	if printed := printEach(o, "KEYS BYTES ENDLESS HEALED RULE", lines, memoryLine.row); err == nil {
		err = printed
	}
	return err
}

// survey looks at the keys of all rules, or with prefixes. With heal those that
// have no expiry are given one: by default that which the rule's keys may have.
func (o *operator) survey(ctx context.Context, prefixes []string, expiry time.Duration, heal bool) ([]memoryLine, error) {
	var groups []*runtime.KeyGroup
	var lines []memoryLine
	if len(prefixes) > 0 {
		for _, prefix := range prefixes {
			if prefix == "" {
				return nil, usagef("a PREFIX is empty: it would stand for every key of the database")
			}
			groups = append(groups, &runtime.KeyGroup{Prefix: prefix})
			lines = append(lines, memoryLine{Prefix: prefix})
		}
	} else {
		if len(o.known) == 0 {
			return nil, usagef("whose keys? Name the rules with -rules, or a PREFIX that only the limiter uses")
		}
		groups = o.groups(func(d declared, group *runtime.KeyGroup) {
			if heal {
				group.Expiry = o.limiter.KeysOf(d.Rule).Expiry
				if d.byCall != "" { // a bucket with a lower max may drain for longer
					group.Expiry = max(group.Expiry, 48*time.Hour)
				}
			}
			lines = append(lines, memoryLine{Rule: d.Name, Prefix: group.Prefix})
		})
	}
	for _, group := range groups {
		if heal && expiry > 0 {
			group.Expiry = expiry
		}
	}
	err := o.surveyed(ctx, groups)
	for i, g := range groups {
		l := &lines[i]
		l.Keys, l.Bytes, l.Endless, l.Healed = g.Keys, g.Bytes, g.Endless, g.Healed
	}
	return lines, err
}
