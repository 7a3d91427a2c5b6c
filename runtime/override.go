package runtime

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// An Override changes a rule while the program runs. A field that is nil
// leaves the rule as it was declared.
type Override struct {
	// Enabled at false takes the limit away: calls go on uncounted by it.
	Enabled *bool
	// Max is how much is admitted in a window, also where a call brings a max
	// of its own. At 0 nobody is.
	Max *int64
	// Window is the time that the max refers to. What was counted in a shorter
	// window before is forgotten when that is over.
	Window *time.Duration
	// Mode enforces a limit or puts it in the shadow.
	Mode *Mode
}

// Overrides are all that is to be different from what was declared.
type Overrides struct {
	// Enabled at false takes all limits away, as [WithEnabled] does.
	Enabled *bool
	// Rules are the changed rules by their names.
	Rules map[string]Override
}

// An OverrideSource knows the overrides that ought to be in force. Package
// runtime/override has two: a file, and a hash in Redis.
type OverrideSource interface {
	// Overrides returns all overrides as they are now, and gives up when ctx
	// ends. It is called by one goroutine at a time. An error leaves the last
	// good ones in force.
	Overrides(ctx context.Context) (Overrides, error)
}

// check returns an error that names what makes no sense in any rule.
func (o *Overrides) check() error {
	for _, name := range slices.Sorted(maps.Keys(o.Rules)) {
		of := o.Rules[name]
		switch {
		case of.Max != nil && (*of.Max < 0 || *of.Max > MaxCount):
			return fmt.Errorf("override of rule %q: max %d is not between 0 and %d", name, *of.Max, int64(MaxCount))
		case of.Window != nil && (*of.Window < MinWindow || *of.Window > MaxWindow):
			return fmt.Errorf("override of rule %q: window %v is not between %v and 366 days", name, *of.Window, MinWindow)
		case of.Mode != nil && *of.Mode > Shadow:
			return fmt.Errorf("override of rule %q: unknown mode %d", name, *of.Mode)
		}
	}
	return nil
}

// A ruling is a set of overrides in force. Every rule meets it once and is
// then known, so that a call costs no more than to look its rule up.
type ruling struct {
	Overrides
	rules sync.Map // *Rule as declared -> ruled
}

// A ruled is a rule as it holds.
type ruled struct {
	rule *Rule
	off  bool
	max  bool // rule.Max holds for every call
}

// of returns how a rule holds.
func (r *ruling) of(l *Limiter, declared *Rule) ruled {
	if found, ok := r.rules.Load(declared); ok {
		return found.(ruled)
	}
	holds, err := r.rule(declared)
	if err != nil {
		holds = ruled{rule: declared}
		l.refused(err)
	}
	found, _ := r.rules.LoadOrStore(declared, holds)
	return found.(ruled)
}

// rule applies the overrides to a rule. The error says why the rule cannot be
// so.
func (r *ruling) rule(declared *Rule) (ruled, error) {
	of, ok := r.Rules[declared.Name]
	if !ok {
		return ruled{rule: declared}, nil
	}
	changed := *declared
	changed.declared = declared
	holds := ruled{rule: &changed, off: of.Enabled != nil && !*of.Enabled, max: of.Max != nil}
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
		return ruled{}, fmt.Errorf("override of rule %q: %w", declared.Name, err)
	}
	return holds, nil
}
