package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// An affected says what a change would do to callers, as far as Redis knows.
type affected struct {
	Callers int64    `json:"callers"`           // whose keys are counted now
	Refused int64    `json:"refused"`           // of these, a call of a cost of 1, as it is
	Would   int64    `json:"would_be_refused"`  // with the change
	Unknown []string `json:"partial,omitempty"` // why that is not all
}

// String says it in words.
func (a *affected) String() string {
	text := fmt.Sprintf("callers that are counted now: %d, refused now: %d, with the change: %d", a.Callers, a.Refused, a.Would)
	if len(a.Unknown) > 0 {
		text += "; that is not all: " + strings.Join(a.Unknown, ", ")
	}
	return text
}

// affectedBy finds out what the next call of each caller of a target would find, now and after a change.
func (c *editing) affectedBy(ctx context.Context, t override.Target, after override.Change) (*affected, error) {
	a := new(affected)
	modified := &session{printer: c.printer, store: c.store, namespace: c.namespace, near: c.near, max: c.max, known: c.known}
	defer func() { // the store is the command's
		if modified.limiter != nil {
			_ = modified.limiter.Close()
		}
	}()
	if err := c.follow(ctx); err != nil {
		return nil, err
	}
	change := after.At(time.Now())
	if c.broken {
		a.Unknown = append(a.Unknown, "the limiters reject the hash, and here limits are as declared")
	}
	if err := modified.followSaid(ctx, changed(c.modes, t, change)); err != nil {
		return nil, err
	}
	rules := slices.Clone(c.known)
	if t.Rule != override.All {
		rules = slices.DeleteFunc(rules, func(d declared) bool { return d.Name != t.Rule })
	}
	if c.max == 0 && change.Max == nil && slices.ContainsFunc(rules, func(d declared) bool { return d.byCall != "" }) {
		a.Unknown = append(a.Unknown, "callers who bring their max are judged by no max")
	}
	refuses := func(s keyState) int64 {
		if !s.Shadow && slices.Contains([]string{"refused", "held", "blocked"}, s.State) {
			return 1
		}
		return 0
	}
	err := c.visit(ctx, rules, func(ctx context.Context, d declared, _ string, keys []runtime.FoundKey) error {
		var found []*runtime.Key
		for _, k := range keys {
			key, err := runtime.ParseKey(k.Text)
			if err != nil {
				continue // another key that begins alike
			}
			if _, is := matching(map[string]bool{t.Pattern: true}, key.Pattern()); is || !t.Keys {
				found = append(found, key)
			}
		}
		states := make([][2]keyState, len(found))
		errs := together(2*len(found), func(i int) (err error) {
			of := []*session{&c.session, modified}[i%2]
			states[i/2][i%2], err = of.stateOrBroken(ctx, d, found[i/2])
			return err
		})
		for _, s := range states {
			a.Callers, a.Refused, a.Would = a.Callers+1, a.Refused+refuses(s[0]), a.Would+refuses(s[1])
		}
		return cmp.Or(errs...)
	})
	if one := t.Keys && !strings.HasSuffix(t.Pattern, "*"); change.Max != nil && *change.Max == 0 && (!one || a.Callers == 0) {
		a.Unknown = append(a.Unknown, "those for whom nothing is counted are refused too")
	}
	return a, err
}

// changed returns overrides in which a target has others.
func changed(says runtime.Overrides, t override.Target, to runtime.KeyOverride) runtime.Overrides {
	if t.Rule == override.All {
		says.Enabled = to.Enabled
		return says
	}
	says.Rules = maps.Clone(says.Rules)
	if says.Rules == nil {
		says.Rules = map[string]runtime.Override{}
	}
	of := says.Rules[t.Rule]
	if t.Keys {
		of.Keys = maps.Clone(of.Keys)
		if of.Keys == nil {
			of.Keys = map[string]runtime.KeyOverride{}
		}
		if delete(of.Keys, t.Pattern); to != (runtime.KeyOverride{}) {
			of.Keys[t.Pattern] = to
		}
	} else {
		of.Max, of.Window, of.Mode, of.Enabled = to.Max, to.Window, to.Mode, to.Enabled
	}
	says.Rules[t.Rule] = of
	return says
}
