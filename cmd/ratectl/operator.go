package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// An operator does what a command says, with the code of the limiter itself.
type operator struct {
	*program
	*options
	known   []declared
	client  redis.UniversalClient
	store   *runtime.RedisStore
	limiter *runtime.Limiter // with the overrides in force, but for their modes
	modes   runtime.Overrides
	scans   scans    // of the walk under way
	counted sync.Map // clients whose scans they are
	screen  *screen  // of top; nil: tables are printed one after another
	past    []pastRates
}

// open connects to Redis, and reads the overrides if the hash is named and the
// command judges by them.
func (o *operator) open(ctx context.Context, judges bool) (err error) {
	if err := o.secrets(o.getenv); err != nil {
		return err
	}
	if o.client, err = o.connect(ctx); err != nil {
		return err
	}
	o.store = runtime.NewRedisStore(o.client, runtime.WithTimeout(o.timeout), runtime.WithDenialMemory(0))
	if !judges {
		o.renew()
		return nil
	}
	return o.follow(ctx)
}

// renew makes another limiter.
func (o *operator) renew(more ...runtime.Option) {
	if o.limiter != nil {
		_ = o.limiter.Close()
	}
	settings := []runtime.Option{runtime.WithNamespace(o.namespace), runtime.WithoutReports(), runtime.WithLogger(slog.New(slog.DiscardHandler))}
	o.limiter = runtime.New(o.store, append(settings, more...)...)
}

// follow makes a limiter with the overrides as they are now. What a rule in the
// shadow would refuse is told as a refusal, so the modes are kept apart.
func (o *operator) follow(ctx context.Context) error {
	if o.overrides == "" {
		o.renew()
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	says, err := override.Redis(o.client, o.overrides).Overrides(asking)
	rejected := errors.Is(err, runtime.ErrInvalidOverrides)
	if err == nil {
		err = says.Check(o.declared()...)
		rejected = err != nil
	}
	if rejected {
		err = fmt.Errorf("the limiters reject the overrides, and go on with those before: %w", inFull(err))
	}
	if err != nil {
		return o.explained(err)
	}
	o.modes = says
	without := withoutModes(says)
	if without.Enabled == nil && len(without.Rules) == 0 {
		o.renew()
		return nil
	}
	inForce := make(chan error, 1)
	o.renew(runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) { return without, nil }), 24*time.Hour),
		runtime.WithObserver(&runtime.Observer{Override: func(ev runtime.OverrideEvent) {
			select {
			case inForce <- ev.Err:
			default:
			}
		}}))
	select {
	case err := <-inForce:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// withoutModes returns overrides that leave the mode of all rules at enforce.
func withoutModes(o runtime.Overrides) runtime.Overrides {
	rules := make(map[string]runtime.Override, len(o.Rules))
	for name, of := range o.Rules {
		keys := make(map[string]runtime.KeyOverride, len(of.Keys))
		for pattern, key := range of.Keys {
			key.Mode = nil
			keys[pattern] = key
		}
		of.Mode, of.Keys = nil, keys
		rules[name] = of
	}
	return runtime.Overrides{Enabled: o.Enabled, Rules: rules}
}

// close gives back what open has taken.
func (o *operator) close() {
	if o.limiter != nil {
		_ = o.limiter.Close()
	}
	if o.store != nil {
		_ = o.store.Close()
	}
	if o.client != nil {
		_ = o.client.Close()
	}
}

// declared returns the known rules as the limiter has them.
func (o *operator) declared() (rules []*runtime.Rule) {
	for _, d := range o.known {
		rules = append(rules, d.Rule)
	}
	return rules
}

// rule returns the rule that has a name or a prefix.
func (o *operator) rule(name string) (declared, error) {
	var found []declared
	for _, d := range o.known {
		if d.Prefix == name {
			return d, nil
		}
		same := func(f declared) bool { return f.Prefix == d.Prefix }
		if d.Name == name && !slices.ContainsFunc(found, same) {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return declared{}, o.unknown(name)
	}
	return declared{}, usagef("%d rules have the name %q, at %s and %s: name the one by its prefix, such as %q",
		len(found), name, found[0].place, found[1].place, found[0].Prefix)
}

func (o *operator) unknown(name string) error {
	var names []string
	for _, d := range o.known {
		names = append(names, d.Name)
	}
	return usagef("no rule has the name %q%s; ratectl rules lists them", name, suggest(name, names))
}

// limitNamed returns the rule that the first argument names, and its limit for the key
// that the others name.
func (o *operator) limitNamed(args []string) (d declared, limit runtime.Limit, key *runtime.Key, err error) {
	if d, err = o.rule(args[0]); err == nil {
		limit, key, err = o.limit(d, args[1:])
	}
	return d, limit, key, err
}

// limit returns the limit of a rule for the key that the other arguments name.
func (o *operator) limit(d declared, args []string) (runtime.Limit, *runtime.Key, error) {
	text := ""
	if len(args) == 1 && !o.parts {
		text = args[0]
		if whole := o.limiter.KeysOf(d.Rule); strings.HasPrefix(text, whole.Prefix) {
			rest, is := whole.Text(text)
			if !is {
				return runtime.Limit{}, nil, usagef("%q is no key of %s: it counts by another algorithm", text, d.Name)
			}
			text, args = rest, []string{rest}
		}
	}
	key, err := o.key(args)
	if errors.Is(err, runtime.ErrInvalidKey) {
		err = usagef("%q is no key of %s: %v; with -parts a key is given as it is, without escapes", text, d.Name, err)
	}
	if err != nil {
		return runtime.Limit{}, nil, err
	}
	if err := o.fits(d, key, args); err != nil {
		return runtime.Limit{}, nil, err
	}
	return o.limitOf(d, key), key, nil
}

// limitOf returns the limit of a rule for a key. Calls that bring a max of their
// own have that of -max, or one that nobody reaches.
func (o *operator) limitOf(d declared, key *runtime.Key) runtime.Limit {
	limit := d.Limit(key)
	switch {
	case o.max > 0:
		return limit.WithMax(o.max)
	case d.byCall != "":
		return limit.WithMax(runtime.MaxLog)
	}
	return limit
}

// fits returns an error if a key has not as many parts as the rule's keys.
func (o *operator) fits(d declared, key *runtime.Key, args []string) error {
	text := key.String()
	n := len(args)
	if !o.parts && n == 1 {
		n = 1 + strings.Count(text, ":")
	}
	switch {
	case d.anyKey, strings.HasPrefix(text, "%sha256-") || n == len(d.parts) || text == "" && len(d.parts) == 0:
		return nil
	case len(d.parts) == 0:
		return usagef("rule %s has one limit for all callers: leave the KEY out", d.Name)
	case o.parts:
		return usagef("the keys of rule %s are %s: give %d parts, not %d", d.Name, strings.Join(d.parts, ","), len(d.parts), n)
	case n == 0:
		return usagef("rule %s has a limit for each %s: name the KEY", d.Name, strings.Join(d.parts, ","))
	}
	return usagef("the number of parts of a key of rule %s (%s) is %d, and not %d as in %q: write a colon within a part as %%3A, or give the parts with -parts",
		d.Name, strings.Join(d.parts, ","), len(d.parts), n, text)
}

// editor returns an editor of the overrides.
func (o *operator) editor() (*override.Editor, error) {
	if o.overrides == "" {
		return nil, usagef("which hash has the overrides? Name the key that the programs give to override.Redis, with -overrides or RATECTL_OVERRIDES")
	}
	return override.NewEditor(o.client, o.overrides, o.declared()...), nil
}
