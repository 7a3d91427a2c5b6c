package override

import (
	"context"
	"errors"

	"github.com/rategen/rategen/runtime"
)

// Edit changes the override of a rule or, if pattern is not nil, of its keys of
// that pattern: the fields of change that are not nil replace those that there are.
// A nil change takes the override away, if there is one. It is [Editor.Set] and
// [Editor.Remove] in the form in which package ratepage asks for them, and so it is
// [ErrConflict] to change a part of an override that has an end.
func (e *Editor) Edit(ctx context.Context, rule string, pattern *string, change *runtime.KeyOverride) error {
	if rule == All {
		return errors.New("override: a rule of the name * cannot be overridden in a hash, where * is for all limits")
	}
	target := Target{Rule: rule}
	if pattern != nil {
		target.Pattern, target.Keys = *pattern, true
	}
	if change == nil {
		_, err := e.Remove(ctx, target)
		return err
	}
	_, _, err := e.Set(ctx, target, Change{KeyOverride: *change})
	return err
}
