package main

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/rategen/rategen/runtime"
)

// peeks is how many keys are looked at at the same time.
const peeks = 128

// atOnce is about how many bytes of counts are in memory at a time.
const atOnce = 16 << 20

// visit calls do with the keys of rules, some at a time: up to peeks keys, or those of about
// atOnce bytes. It ends with the first error of do.
func (o *operator) visit(ctx context.Context, rules []declared, do func(ctx context.Context, d declared, prefix string, keys []runtime.FoundKey) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	var rest []func()
	groups := o.groups(func(d declared, group *runtime.KeyGroup) {
		if !slices.ContainsFunc(rules, func(r declared) bool { return r.Rule == d.Rule }) {
			return
		}
		var keys []runtime.FoundKey
		bytes := int64(0)
		flush := func() {
			if failed == nil {
				if failed = do(ctx, d, group.Prefix, keys); failed != nil {
					cancel()
				}
			}
			keys, bytes = nil, 0
		}
		group.Each = func(key runtime.FoundKey) {
			if keys, bytes = append(keys, key), bytes+key.Bytes; len(keys) == peeks || bytes > atOnce {
				flush()
			}
		}
		rest = append(rest, flush)
	})
	err := o.surveyed(ctx, groups)
	for _, flush := range rest {
		flush()
	}
	if failed != nil {
		return o.explained(failed)
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

// walk calls found with the state of every key of rules. It asks Redis about several keys at
// the same time, so that they share trips.
func (o *operator) walk(ctx context.Context, rules []declared, found func(declared, keyState)) error {
	return o.visit(ctx, rules, func(ctx context.Context, d declared, _ string, keys []runtime.FoundKey) error {
		states := make([]keyState, len(keys))
		errs := make([]error, len(keys))
		var all sync.WaitGroup
		for i, k := range keys {
			all.Go(func() {
				key, err := runtime.ParseKey(k.Text)
				if err != nil {
					return // some other key that begins alike
				}
				states[i], errs[i] = o.state(ctx, d, key)
				if runtime.ClassOf(errs[i]) == runtime.ClassWrongType { // of this key alone
					states[i], errs[i] = keyState{Rule: d.Name, Key: key.Pattern(), State: "broken"}, nil
				}
			})
		}
		all.Wait()
		if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
			return errs[i]
		}
		for _, s := range states {
			if s.State != "" {
				found(d, s)
			}
		}
		return nil
	})
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
	if err := printEach(o, keyHead, top, keyState.row); err != nil {
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
