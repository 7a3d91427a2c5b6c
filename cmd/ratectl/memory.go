package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/runtime/override"
)

type memoryLine struct {
	Rule    string `json:"rule,omitempty"`
	Prefix  string `json:"prefix"`
	Keys    int64  `json:"keys"`
	Bytes   int64  `json:"bytes"`
	Endless int64  `json:"endless"` // without an expiry
	Healed  int64  `json:"healed"`
}

const memoryHead = "KEYS BYTES ENDLESS HEALED RULE"

func (l memoryLine) row() []string {
	return rowOf(l.Keys, l.Bytes, l.Endless, l.Healed, cmp.Or(l.Rule, printed.Text(l.Prefix)))
}

func (s *session) memory(ctx context.Context, args []string) error {
	lines, err := s.survey(ctx, args, 0, false)
	if lines == nil {
		return err // not one key was looked at
	}
	return cmp.Or(err, printEach(&s.printer, memoryHead, lines, memoryLine.row))
}

func (s *session) fixExpiry(ctx context.Context, args []string) error {
	if s.expiry < 0 || len(args) > 0 && s.expiry == 0 {
		return usagef("say with -expiry how long the keys of a PREFIX may live on, longer than any window: -expiry 48h, for instance")
	}
	lines, err := s.survey(ctx, args, 0, false)
	if err != nil {
		return err
	}
	endless := int64(0)
	for _, l := range lines {
		endless += l.Endless
	}
	if endless > 0 && !s.dry {
		if err := s.confirm(ctx, "give %d keys an expiry", endless); err != nil {
			return err
		}
		before := strings.TrimSpace(fmt.Sprintf("%d keys without an expiry %s", endless, strings.Join(args, " ")))
		if err := s.Note(ctx, override.Record{Target: override.Target{Rule: override.All}, Who: s.author(), Why: s.why, Did: "fix-expiry", Before: before}); err != nil {
			return err
		}
		lines, err = s.survey(ctx, args, s.expiry, true)
	}
	return cmp.Or(err, printEach(&s.printer, memoryHead, lines, memoryLine.row))
}

// survey looks at the keys of all rules, or with prefixes. With heal those that have no expiry are
// given one: by default that which the rule's keys may have.
func (s *session) survey(ctx context.Context, prefixes []string, expiry time.Duration, heal bool) ([]memoryLine, error) {
	var groups []*bridge.KeyGroup
	for _, prefix := range prefixes {
		if prefix == "" {
			return nil, usagef("a PREFIX is empty: it would stand for every key of the database")
		}
		groups = append(groups, &bridge.KeyGroup{Prefix: prefix})
	}
	names := make([]string, len(prefixes))
	if len(prefixes) == 0 {
		if len(s.Rules) == 0 {
			return nil, usagef("whose keys? Name the rules with -rules, or a PREFIX that only the limiter uses")
		}
		groups, names = s.Groups(), s.Names()
	}
	for i, group := range groups {
		if heal && expiry > 0 {
			group.Expiry = expiry
		} else if heal {
			group.Expiry = bridge.LimiterOf(s.Limiter).KeysOf(s.Rules[i].Rule).Expiry
			if s.Rules[i].ByCall != "" { // a bucket with a lower max may drain for longer
				group.Expiry = max(group.Expiry, 48*time.Hour)
			}
		}
	}
	err := s.Survey(ctx, groups)
	lines := make([]memoryLine, len(groups))
	for i, g := range groups {
		lines[i] = memoryLine{names[i], g.Prefix, g.Keys, g.Bytes, g.Endless, g.Healed}
	}
	if err != nil {
		err = foreign{fmt.Errorf("only a part of the keys was looked at: %w", s.explained(err))}
	}
	return lines, err
}
