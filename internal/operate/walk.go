package operate

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// Peeks is how many keys are looked at at the same time.
const Peeks = 128

// AtOnce is about how many bytes of counts are in memory at a time.
const AtOnce = 16 << 20

// Visit calls do with the keys of rules, some at a time: up to Peeks keys, or those of about
// AtOnce bytes. It ends with the first error of do.
func (c *Core) Visit(ctx context.Context, rules []Rule, do func(ctx context.Context, r Rule, prefix string, keys []bridge.FoundKey) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	var rest []func()
	groups := c.Groups()
	for i, group := range groups {
		d := c.Rules[i]
		if !slices.ContainsFunc(rules, func(r Rule) bool { return r.Rule == d.Rule }) {
			continue
		}
		var keys []bridge.FoundKey
		bytes := int64(0)
		flush := func() {
			if failed == nil {
				if failed = do(ctx, d, group.Prefix, keys); failed != nil {
					cancel()
				}
			}
			keys, bytes = nil, 0
		}
		group.Each = func(key bridge.FoundKey) {
			if keys, bytes = append(keys, key), bytes+key.Bytes; len(keys) == Peeks || bytes > AtOnce {
				flush()
			}
		}
		rest = append(rest, flush)
	}
	err := c.Survey(ctx, groups)
	for _, flush := range rest {
		flush()
	}
	return cmp.Or(failed, err)
}

// Groups returns the keys of all rules, in their order, for a key counts for the longest prefix. They
// keep their expiries.
func (c *Core) Groups() []*bridge.KeyGroup {
	groups := make([]*bridge.KeyGroup, len(c.Rules))
	for i, r := range c.Rules {
		groups[i] = bridge.LimiterOf(c.Limiter).KeysOf(r.Rule)
		groups[i].Expiry = 0
	}
	return groups
}

func (c *Core) Survey(ctx context.Context, groups []*bridge.KeyGroup) error {
	if c.Scanning != nil {
		defer c.Scanning(ctx)()
	}
	return bridge.StoreOf(c.Store).Survey(ctx, groups...)
}

// Walk calls found with the state of every key of rules. It asks Redis about several keys at
// the same time, so that they share trips.
func (c *Core) Walk(ctx context.Context, rules []Rule, found func(Rule, State)) error {
	return Judge(ctx, rules, func(string) bool { return true }, func(r Rule, states []State) { found(r, states[0]) }, c)
}

// Judge calls found with the states of keys of rules that are wanted, as each of some cores has them.
// The first one finds the keys.
func Judge(ctx context.Context, rules []Rule, wanted func(pattern string) bool, found func(Rule, []State), by ...*Core) error {
	return by[0].Visit(ctx, rules, func(ctx context.Context, r Rule, _ string, texts []bridge.FoundKey) error {
		var keys []*runtime.Key
		for _, t := range texts {
			if key, err := rule.ParseKey(t.Text); err == nil && wanted(key.Pattern()) { // and no other key that begins alike
				keys = append(keys, key)
			}
		}
		states := make([]State, len(keys)*len(by))
		if err := cmp.Or(Together(len(states), func(i int) (err error) {
			states[i], err = by[i%len(by)].State(ctx, r, keys[i/len(by)])
			return err
		})...); err != nil {
			return err
		}
		for of := range slices.Chunk(states, len(by)) {
			found(r, of)
		}
		return nil
	})
}

// Together calls do for each of n keys at the same time, so that they share trips, and returns the
// error of each.
func Together(n int, do func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errs
}

type Keys struct {
	Top     []State
	Matched int // that are in the states that were asked for
	Total   int
}

// Keys returns the first keys of a rule in some states.
func (c *Core) Keys(ctx context.Context, r Rule, wanted []string, most int) (keys Keys, err error) {
	cut := func() {
		slices.SortFunc(keys.Top, Worse)
		keys.Top = keys.Top[:min(len(keys.Top), most)]
	}
	err = c.Walk(ctx, []Rule{r}, func(_ Rule, k State) {
		keys.Total++
		if slices.Contains(wanted, k.State) {
			keys.Matched++
			if keys.Top = append(keys.Top, k); len(keys.Top) >= 2*most+1000 {
				cut()
			}
		}
	})
	cut()
	return keys, err
}

// Masters calls do for every server that holds keys.
func (c *Core) Masters(ctx context.Context, do func(context.Context, *redis.Client) error) error {
	switch client := c.Client.(type) {
	case *redis.ClusterClient:
		return client.ForEachMaster(ctx, do)
	case *redis.Client:
		return do(ctx, client)
	}
	return nil // nobody makes another client
}

// Scan calls each with every key in Redis that fits one of some patterns, and with some twice.
func (c *Core) Scan(ctx context.Context, patterns []string, batch int64, each func(key string)) error {
	var mu sync.Mutex
	return c.Masters(ctx, func(ctx context.Context, server *redis.Client) error {
		for _, pattern := range patterns {
			for cursor, more := uint64(0), true; more; more = cursor != 0 {
				keys, next, err := server.Scan(ctx, cursor, pattern, batch).Result()
				if err != nil {
					return err
				}
				mu.Lock()
				for _, key := range keys {
					each(key)
				}
				mu.Unlock()
				cursor = next
			}
		}
		return nil
	})
}

// Literally escapes what has a meaning in a pattern of SCAN.
var Literally = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)
