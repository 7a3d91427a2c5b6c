package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/rategen/rategen/runtime"
)

// peeks is how many keys are looked at at the same time.
const peeks = 128

// A walk looks at the keys of rules, whichever state they are in.
type walk struct {
	*operator
	found  func(declared, keyState)
	failed error
}

// walk calls found with every key of rules. On the way it asks Redis about some
// hundred keys at a time.
func (o *operator) walk(ctx context.Context, rules []declared, found func(declared, keyState)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var rest []func()
	w := &walk{operator: o, found: found}
	groups := o.groups(func(d declared, group *runtime.KeyGroup) {
		if slices.ContainsFunc(rules, func(r declared) bool { return r.Rule == d.Rule }) {
			var texts []string
			look := func() {
				if w.failed == nil {
					if w.failed = w.look(ctx, d, texts); w.failed != nil {
						cancel()
					}
				}
				texts = nil
			}
			group.Each = func(key runtime.FoundKey) {
				if texts = append(texts, key.Text); len(texts) == peeks {
					look()
				}
			}
			rest = append(rest, look)
		}
	})
	err := o.surveyed(ctx, groups)
	for _, look := range rest {
		look()
	}
	if w.failed != nil {
		err = o.explained(w.failed)
	}
	return err
}

// groups returns the keys of all rules, for a key counts for the longest prefix. They keep
// their expiries unless change sets one.
func (o *operator) groups(change func(declared, *runtime.KeyGroup)) []*runtime.KeyGroup {
	groups := make([]*runtime.KeyGroup, len(o.known))
	for i, d := range o.known {
		groups[i] = o.limiter.KeysOf(d.Rule)
		groups[i].Expiry = 0
		change(d, groups[i])
	}
	return groups
}

// surveyed looks at keys, and shows how far it is.
func (o *operator) surveyed(ctx context.Context, groups []*runtime.KeyGroup) error {
	if len(groups) == 0 {
		return nil
	}
	defer o.progress(ctx)()
	return o.explained(o.store.Survey(ctx, groups...))
}

// look looks at some keys at the same time, so that they share trips to Redis.
func (w *walk) look(ctx context.Context, d declared, texts []string) error {
	states := make([]keyState, len(texts))
	errs := make([]error, len(texts))
	var all sync.WaitGroup
	for i, text := range texts {
		all.Go(func() {
			key, err := runtime.ParseKey(text)
			if err != nil {
				return // some other key that begins alike
			}
			states[i], errs[i] = w.state(ctx, d, key)
			if runtime.ClassOf(errs[i]) == runtime.ClassWrongType { // of this key alone
				states[i], errs[i] = keyState{Rule: d.Name, Key: key.Pattern(), State: "broken"}, nil
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
	}
	for _, s := range states {
		if s.State != "" {
			w.found(d, s)
		}
	}
	return nil
}

// keys prints the keys of a rule, the most refused first.
func keys(ctx context.Context, o *operator, args []string) error {
	d, err := o.rule(args[0])
	if err != nil {
		return err
	}
	wanted, err := wantedStates(o.filter)
	if err != nil {
		return err
	}
	if d.byCall != "" && o.max == 0 && o.filter != "" {
		return usagef("calls of rule %s bring a max of their own, %s: say with -max which one to judge by", d.Name, d.byCall)
	}
	top, matched, total, err := o.keysOf(ctx, d, wanted)
	if err != nil {
		return err
	}
	if total == 0 {
		return o.noKeys(ctx, d)
	}
	if err := each(o, keyHead, top, keyState.row); err != nil {
		return err
	}
	if len(top) < matched {
		o.logger().Printf("these are the first %d of %d keys, see -limit and -state", len(top), matched)
	}
	return nil
}

// keyHead are the headings of keys.
const keyHead = "KEY STATE USED RETRY RESET"

// keysOf returns the first keys of a rule in some states, how many are in these, and how
// many there are.
func (o *operator) keysOf(ctx context.Context, d declared, wanted map[string]bool) (top []keyState, matched, total int, err error) {
	cut := func(most int) {
		slices.SortFunc(top, worse)
		top = top[:min(len(top), most)]
	}
	err = o.walk(ctx, []declared{d}, func(_ declared, s keyState) {
		total++
		if wanted[s.State] {
			matched++
			if top = append(top, s); len(top) >= 2*o.most+1000 {
				cut(o.most)
			}
		}
	})
	cut(o.most)
	return top, matched, total, err
}

// wantedStates returns the states that a filter names.
func wantedStates(filter string) (map[string]bool, error) {
	wanted := make(map[string]bool)
	for _, state := range states {
		wanted[state] = filter == ""
	}
	if filter == "" {
		return wanted, nil
	}
	for state := range strings.SplitSeq(filter, ",") {
		if !slices.Contains(states, state) {
			return nil, usagef("-state %q: write some of %s, separated by commas", state, strings.Join(states, ", "))
		}
		wanted[state] = true
	}
	return wanted, nil
}

// worse orders states: what keeps callers out comes first.
func worse(a, b keyState) int {
	rank := func(s keyState) int { return -slices.Index(states, s.State) }
	switch {
	case rank(a) != rank(b):
		return rank(a) - rank(b)
	case a.share != b.share:
		if a.share > b.share {
			return -1
		}
		return 1
	case a.Used != b.Used:
		return int(min(max(b.Used-a.Used, -1), 1))
	}
	return strings.Compare(a.Key, b.Key)
}
