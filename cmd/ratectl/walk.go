package main

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

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
	groups := s.groups()
	for i, group := range groups {
		d := s.known[i]
		if !slices.ContainsFunc(rules, func(r declared) bool { return r.Rule == d.Rule }) {
			continue
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
	}
	err := s.surveyed(ctx, groups)
	for _, flush := range rest {
		flush()
	}
	return cmp.Or(failed, err)
}

// groups returns the keys of all rules, in their order, for a key counts for the longest prefix. They
// keep their expiries.
func (s *session) groups() []*runtime.KeyGroup {
	groups := make([]*runtime.KeyGroup, len(s.known))
	for i, d := range s.known {
		groups[i] = s.limiter.KeysOf(d.Rule)
		groups[i].Expiry = 0
	}
	return groups
}

// surveyed looks at keys, and shows how far it is.
func (s *session) surveyed(ctx context.Context, groups []*runtime.KeyGroup) error {
	defer s.progress(ctx)()
	return s.store.Survey(ctx, groups...)
}

// walk calls found with the state of every key of rules. It asks Redis about several keys at
// the same time, so that they share trips.
func (s *session) walk(ctx context.Context, rules []declared, found func(declared, keyState)) error {
	return s.judge(ctx, rules, func(string) bool { return true }, func(d declared, states []keyState) { found(d, states[0]) }, s)
}

// judge calls found with the states of keys of rules that are wanted, as each of some sessions has them.
func (s *session) judge(ctx context.Context, rules []declared, wanted func(pattern string) bool, found func(declared, []keyState), by ...*session) error {
	return s.visit(ctx, rules, func(ctx context.Context, d declared, _ string, texts []runtime.FoundKey) error {
		var keys []*runtime.Key
		for _, t := range texts {
			if key, err := runtime.ParseKey(t.Text); err == nil && wanted(key.Pattern()) { // and no other key that begins alike
				keys = append(keys, key)
			}
		}
		states := make([]keyState, len(keys)*len(by))
		if err := cmp.Or(together(len(states), func(i int) (err error) {
			states[i], err = by[i%len(by)].stateOrBroken(ctx, d, keys[i/len(by)])
			return err
		})...); err != nil {
			return err
		}
		for of := range slices.Chunk(states, len(by)) {
			found(d, of)
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
func (s *session) keysOf(ctx context.Context, d declared, wanted []string, most int) (top []keyState, matched, total int, err error) {
	cut := func() {
		slices.SortFunc(top, worse)
		top = top[:min(len(top), most)]
	}
	err = s.walk(ctx, []declared{d}, func(_ declared, k keyState) {
		total++
		if slices.Contains(wanted, k.State) {
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

// A scans is a hook that counts SCAN, and shows how far a walk is.
type scans struct {
	hooked   sync.Map                      // clients that have it: a client keeps its hooks, and top walks again and again
	n, total atomic.Int64                  // SCANs so far, and keys
	line     atomic.Pointer[progress.Line] // nil: nobody is shown
}

// surveyBatch is how many keys a SCAN of a survey goes over.
const surveyBatch = 200

func (s *scans) DialHook(next redis.DialHook) redis.DialHook {
	return next
}

func (s *scans) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "scan" {
			s.line.Load().Show("looked at about %d of %d keys", min(s.n.Add(1)*surveyBatch, s.total.Load()), s.total.Load())
		}
		return next(ctx, cmd)
	}
}

func (s *scans) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
