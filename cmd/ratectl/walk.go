package main

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/progress"
	"github.com/rategen/rategen/runtime"
)

// peeks is how many keys are looked at at the same time.
const peeks = 128

// atOnce is about how many bytes of counts are in memory at a time.
const atOnce = 16 << 20

// visit calls do with the keys of rules, some at a time: up to peeks keys, or those of about
// atOnce bytes. It ends with the first error of do.
func (s *session) visit(ctx context.Context, rules []declared, do func(ctx context.Context, d declared, prefix string, keys []runtime.FoundKey) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	var rest []func()
	groups := s.groups(func(d declared, group *runtime.KeyGroup) {
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
	err := s.surveyed(ctx, groups)
	for _, flush := range rest {
		flush()
	}
	if failed != nil {
		return failed
	}
	return err
}

// groups returns the keys of all rules, for a key counts for the longest prefix. They keep
// their expiries unless change sets one.
func (s *session) groups(change func(declared, *runtime.KeyGroup)) []*runtime.KeyGroup {
	groups := make([]*runtime.KeyGroup, len(s.known))
	for i, d := range s.known {
		groups[i] = s.limiter.KeysOf(d.Rule)
		groups[i].Expiry = 0
		change(d, groups[i])
	}
	return groups
}

// surveyed looks at keys, and shows how far it is.
func (s *session) surveyed(ctx context.Context, groups []*runtime.KeyGroup) error {
	if len(groups) == 0 {
		return nil
	}
	defer s.progress(ctx)()
	return s.store.Survey(ctx, groups...)
}

// walk calls found with the state of every key of rules. It asks Redis about several keys at
// the same time, so that they share trips.
func (s *session) walk(ctx context.Context, rules []declared, found func(declared, keyState)) error {
	return s.visit(ctx, rules, func(ctx context.Context, d declared, _ string, keys []runtime.FoundKey) error {
		states := make([]keyState, len(keys))
		errs := together(len(keys), func(i int) (err error) {
			if key, invalid := runtime.ParseKey(keys[i].Text); invalid == nil { // and no other key that begins alike
				states[i], err = s.stateOrBroken(ctx, d, key)
			}
			return err
		})
		if err := cmp.Or(errs...); err != nil {
			return err
		}
		for _, state := range states {
			if state.State != "" {
				found(d, state)
			}
		}
		return nil
	})
}

// together calls do for each of n keys at the same time, so that they share trips, and returns the
// error of each.
func together(n int, do func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errs
}

// stateOrBroken returns the state of a key, also of one that another program has written.
func (s *session) stateOrBroken(ctx context.Context, d declared, key *runtime.Key) (keyState, error) {
	state, err := s.state(ctx, d, key)
	if runtime.ClassOf(err) == runtime.ClassWrongType {
		return keyState{Rule: d.Name, Key: key.Pattern(), State: "broken"}, nil
	}
	return state, err
}

// keysOf returns the first keys of a rule in some states, how many are in these, and how
// many there are.
func (s *session) keysOf(ctx context.Context, d declared, wanted map[string]bool, most int) (top []keyState, matched, total int, err error) {
	cut := func() {
		slices.SortFunc(top, worse)
		top = top[:min(len(top), most)]
	}
	err = s.walk(ctx, []declared{d}, func(_ declared, k keyState) {
		total++
		if wanted[k.State] {
			matched++
			if top = append(top, k); len(top) >= 2*most+1000 {
				cut()
			}
		}
	})
	cut()
	return top, matched, total, err
}

// progress shows on a terminal how much of the database has been looked at, until
// stop is called.
func (s *session) progress(ctx context.Context) (stop func()) {
	if !s.shows {
		return func() {}
	}
	s.scans.n.Store(0)
	s.scans.total.Store(0)
	_ = s.masters(ctx, func(ctx context.Context, c *redis.Client) error {
		if _, is := s.scans.hooked.LoadOrStore(c, true); !is {
			c.AddHook(&s.scans)
		}
		s.scans.total.Add(c.DBSize(ctx).Val())
		return nil
	})
	line := progress.On(s.err)
	s.scans.line.Store(line)
	return func() {
		s.scans.line.Store(nil)
		line.Clear()
	}
}
