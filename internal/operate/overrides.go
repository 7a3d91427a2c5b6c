package operate

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// Renew makes the limiter anew, with the overrides as they are now. What a rule in shadow mode would refuse
// is told as a refusal, so the modes are kept apart.
func (c *Core) Renew(ctx context.Context) error {
	c.AskedBefore(ctx)
	if c.Hash == "" {
		return c.AsDeclared(ctx)
	}
	says, err := c.OverridesNow(ctx)
	rejected := errors.Is(err, runtime.ErrInvalidOverrides)
	if err == nil {
		err = says.Check(c.declared()...)
		rejected = err != nil
	}
	if rejected { // by which ones calls are decided, nobody can read
		if !c.Rejected { // of what is asked again and again, once
			c.warnf("the limiters reject the overrides, and go on with those before; here limits are as declared: %v", InFull(err))
		}
		c.Rejected = true
		return c.AsDeclared(ctx)
	}
	if err != nil {
		return err
	}
	c.Rejected = false
	return c.renew(ctx, says)
}

func (c *Core) AsDeclared(ctx context.Context) error { return c.renew(ctx, runtime.Overrides{}) }

// renew is Renew with some overrides.
func (c *Core) renew(ctx context.Context, says runtime.Overrides) error {
	if c.Limiter != nil {
		_ = c.Limiter.Close()
	}
	c.Modes = says
	settings := []runtime.Option{runtime.WithNamespace(c.Namespace), runtime.WithoutReports(), runtime.WithLogger(slog.New(slog.DiscardHandler))}
	without := withoutModes(says)
	if without.Enabled == nil && len(without.Rules) == 0 {
		c.Limiter = runtime.New(c.Store, settings...)
		return nil
	}
	inForce := make(chan error, 1)
	source := runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) { return without, nil })
	c.Limiter = runtime.New(c.Store, append(settings, runtime.WithOverrides(source, 24*time.Hour),
		runtime.WithObserver(&observe.Observer{Override: func(ev observe.OverrideEvent) {
			select {
			case inForce <- ev.Err:
			default:
			}
		}}))...)
	select {
	case err := <-inForce:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// withoutModes returns overrides that leave the mode of all rules at enforce.
func withoutModes(o runtime.Overrides) runtime.Overrides {
	o.Rules = cloned(o.Rules)
	for name, of := range o.Rules {
		of.Mode, of.Keys = nil, cloned(of.Keys)
		for pattern, key := range of.Keys {
			key.Mode = nil
			of.Keys[pattern] = key
		}
		o.Rules[name] = of
	}
	return o
}

// cloned returns a copy that can be written to.
func cloned[V any](m map[string]V) map[string]V {
	all := make(map[string]V)
	maps.Copy(all, m)
	return all
}

func (c *Core) OverridesNow(ctx context.Context) (runtime.Overrides, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	return override.Redis(c.Client, c.Hash).Overrides(ctx)
}

type Editor interface {
	Edit(ctx context.Context, e override.Edit) (override.Edited, error)
	Undo(ctx context.Context, id int64, by override.Edit) (override.Record, error)
	List(ctx context.Context) ([]override.Entry, error)
	History(ctx context.Context, n int) ([]override.Record, error)
	Note(ctx context.Context, r override.Record) (id int64, err error)
}

func (c *Core) changes() (Editor, error) {
	if c.Changes != nil {
		return c.Changes, nil
	}
	return c.Editor()
}

// ErrNothing is the error of an edit that is to take back what there is not.
var ErrNothing = errors.New("there was nothing to take back")

// Edit changes the overrides. With [ErrNothing] it returns what there is.
func (c *Core) Edit(ctx context.Context, e override.Edit) (done override.Edited, err error) {
	editor, err := c.changes()
	if err != nil {
		return done, err
	}
	done, err = editor.Edit(ctx, e)
	if err == nil && !done.Found && (e.Remove || len(e.Clear) > 0) {
		err = ErrNothing
	}
	return done, err
}

// Editor returns an editor of the hash.
func (c *Core) Editor() (*override.Editor, error) {
	if c.Hash == "" {
		return nil, Wrongf("which hash has the overrides? Name the key that the programs give to override.Redis, with -overrides or RATECTL_OVERRIDES")
	}
	return override.NewEditor(c.Client, c.Hash, c.declared()...), nil
}

func (c *Core) declared() (rules []*runtime.Rule) {
	for _, r := range c.Rules {
		rules = append(rules, r.Rule)
	}
	return rules
}

// Overrides returns the overrides in the hash, and who has made each.
func (c *Core) Overrides(ctx context.Context) ([]Override, error) {
	records, _, unread := c.History(ctx, Past{Most: math.MaxInt})
	all, err := c.OverridesBy(ctx, records)
	if err == nil && unread != nil { // what is in force is known without
		c.warnf("who has made the overrides is not known: %v", InFull(unread))
	}
	return all, err
}

// OverridesBy is Overrides, of which the history has records.
func (c *Core) OverridesBy(ctx context.Context, records []Record) ([]Override, error) {
	editor, err := c.changes()
	if err != nil {
		return nil, err
	}
	entries, err := editor.List(ctx)
	last := make(map[override.Target]*override.Record)
	for i := len(records) - 1; i >= 0; i-- {
		for t := range records[i].Targets() {
			last[t] = &records[i].Record
		}
	}
	all := make([]Override, len(entries))
	for i, e := range entries {
		all[i] = Override{e, last[e.Target]}
	}
	return all, err
}

// Deciding returns the overrides by which calls are decided: none if the hash is not named, or the
// limiters reject it.
func (c *Core) Deciding(ctx context.Context) ([]Override, error) {
	if c.Hash == "" || c.Rejected {
		return nil, nil
	}
	return c.Overrides(ctx)
}

// OwnOf returns what an override says of the rule, and not of its keys or shares.
func OwnOf(o rule.Override) rule.KeyOverride {
	return rule.KeyOverride{Enabled: o.Enabled, Max: o.Max, Burst: o.Burst, Window: o.Window, Mode: o.Mode}
}
