package runtime

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// An Override changes a rule while the program runs. A field that is nil
// leaves the rule as it was declared.
type Override struct {
	// Enabled at false takes the limit away: calls go on uncounted by it.
	Enabled *bool
	// Max is how much is admitted in a window, also where a call brings a max
	// of its own. At 0 nobody is. A burst that the rule declares stays.
	Max *int64
	// Window is the time that the max refers to. What was counted in a shorter
	// window before is forgotten when that is over.
	Window *time.Duration
	// Mode enforces a limit or puts it in the shadow.
	Mode *Mode
}

// Overrides are all that is to be different from what was declared.
type Overrides struct {
	// Enabled at false takes all limits away, as [WithEnabled] does. At true
	// or nil the limiter's own switch has its say.
	Enabled *bool
	// Rules are the changed rules by their names. A name that no rule has is
	// no error, since rules become known with their first call, but is warned
	// of after a minute without one.
	Rules map[string]Override
}

// An OverrideSource knows the overrides that ought to be in force. Package
// runtime/override has two: a file, and a hash in Redis.
type OverrideSource interface {
	// Overrides returns all overrides as they are now, and gives up when ctx
	// ends. It is called by one goroutine at a time, and what it returned is
	// copied before the next call. An error leaves the last good ones in force.
	Overrides(ctx context.Context) (Overrides, error)
}

// An OverrideFunc is a function as an [OverrideSource].
type OverrideFunc func(ctx context.Context) (Overrides, error)

// Overrides calls f.
func (f OverrideFunc) Overrides(ctx context.Context) (Overrides, error) { return f(ctx) }

// clone returns a copy that nobody else holds any part of.
func (o Overrides) clone() Overrides {
	c := Overrides{Enabled: cloned(o.Enabled)}
	if len(o.Rules) > 0 {
		c.Rules = make(map[string]Override, len(o.Rules))
	}
	for name, of := range o.Rules {
		c.Rules[name] = Override{cloned(of.Enabled), cloned(of.Max), cloned(of.Window), cloned(of.Mode)}
	}
	return c
}

func cloned[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// check returns an error that names what makes no sense in any rule.
func (o *Overrides) check() error {
	for _, name := range slices.Sorted(maps.Keys(o.Rules)) {
		of := o.Rules[name]
		switch {
		case of.Max != nil && (*of.Max < 0 || *of.Max > MaxCount):
			return fmt.Errorf("override of rule %.80q: max %d is not between 0 and %d", name, *of.Max, int64(MaxCount))
		case of.Window != nil && (*of.Window < MinWindow || *of.Window > MaxWindow):
			return fmt.Errorf("override of rule %.80q: window %v is not between %v and 366 days", name, *of.Window, MinWindow)
		case of.Mode != nil && *of.Mode > Shadow:
			return fmt.Errorf("override of rule %.80q: unknown mode %d", name, *of.Mode)
		}
	}
	return nil
}

// A ruling is a set of overrides in force. Every rule meets it once and is
// then known, so that a call costs no more than to look its rule up.
type ruling struct {
	Overrides
	rules ruleTable[ruled]
}

// A ruled is a rule as it holds.
type ruled struct {
	rule *Rule
	off  bool
	max  bool // rule.Max holds for every call
}

func (r *ruling) enabled() bool { return r.Enabled == nil || *r.Enabled }

// of returns how a rule holds. One that the overrides do not fit, which was
// not known when they came into force, stays as it was declared.
func (r *ruling) of(l *Limiter, declared *Rule) *ruled {
	if found := r.rules.of(declared); found != nil {
		return found
	}
	holds, err := r.rule(declared)
	if err != nil {
		holds = &ruled{rule: declared}
	}
	if r.rules.keep(declared, holds) && err != nil {
		l.refused(fmt.Errorf("%w; the rule stays as it was declared", err))
	}
	if found := r.rules.of(declared); found != nil {
		return found // of who was first
	}
	return holds
}

// rule applies the overrides to a rule. The error says why the rule cannot be
// so.
func (r *ruling) rule(declared *Rule) (*ruled, error) {
	of, ok := r.Rules[declared.Name]
	if !ok {
		return &ruled{rule: declared}, nil
	}
	changed := *declared
	changed.declared = declared
	holds := &ruled{rule: &changed, off: of.Enabled != nil && !*of.Enabled, max: of.Max != nil}
	if of.Max != nil {
		changed.Max = *of.Max
	}
	if of.Window != nil {
		changed.Window = *of.Window
	}
	if of.Mode != nil {
		changed.Mode = *of.Mode
	}
	if err := changed.check(changed.Max, 1); err != nil {
		return nil, fmt.Errorf("override: %w", err)
	}
	return holds, nil
}

// after returns the ruling that follows when o are the overrides. The error
// names a rule that they do not fit. What is not changed for a rule goes on to
// hold, also for denials that are remembered by it.
func (r *ruling) after(o Overrides) (next *ruling, err error) {
	next = &ruling{Overrides: o}
	r.rules.all(func(declared *Rule, holds *ruled) bool {
		before, was := r.Rules[declared.Name]
		of, is := o.Rules[declared.Name]
		if was != is || !reflect.DeepEqual(before, of) {
			holds, err = next.rule(declared)
		}
		if err == nil {
			next.rules.keep(declared, holds)
		}
		return err == nil
	})
	return next, err
}
