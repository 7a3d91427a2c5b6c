package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// An edited is an override before and after a change.
type edited struct {
	Before    *overrideEntry `json:"before"` // null: there was none
	After     *overrideEntry `json:"after"`  // null: there is none any more
	ID        int64          `json:"id"`     // of the change in the history; 0: nothing is changed
	DryRun    bool           `json:"dry_run,omitempty"`
	Callers   *int64         `json:"callers,omitempty"`   // with -n: whose keys are counted now
	Processes *following     `json:"processes,omitempty"` // without -n: who was to follow the change
}

// edit changes an override, and prints it before and after.
func (o *operator) edit(ctx context.Context, e override.Edit) error {
	editor, err := o.editor()
	if err != nil {
		return err
	}
	if !e.Remove {
		if err := o.setExpiry(ctx, &e); err != nil {
			return err
		}
	}
	e.Who, e.Why = o.author(), o.why
	following, err := o.following(ctx)
	if err != nil {
		return err
	}
	question := o.confirmation(e)
	if removes := e.Remove || len(e.Clear) > 0; !removes && following.Processes > 0 && following.Follow == 0 {
		question = strings.TrimPrefix(question+", and ", ", and ") + fmt.Sprintf("write to %q, though %v", o.overrides, following)
	}
	if e.Try = true; o.dry || question != "" && !o.yes { // what is wrong is not asked about
		tried, err := editor.Edit(ctx, e)
		if err != nil {
			return o.explained(err)
		}
		if o.dry {
			return o.printDryRun(ctx, e, tried)
		}
		if err := o.confirm(ctx, "%s", question); err != nil {
			return err
		}
	}
	e.Try = false
	done, err := editor.Edit(ctx, e)
	if err != nil {
		return o.explained(err)
	}
	return o.printEdited(e, done, edited{ID: done.ID, Processes: &following})
}

// printDryRun prints what an edit would do.
func (o *operator) printDryRun(ctx context.Context, e override.Edit, would override.Edited) error {
	callers, err := o.callersOf(ctx, e.Target)
	if err != nil {
		return err
	}
	return o.printEdited(e, would, edited{DryRun: true, Callers: &callers})
}

// printEdited prints an override before and after an edit. It returns an error if there was
// nothing to remove.
func (o *operator) printEdited(e override.Edit, done override.Edited, answer edited) error {
	if !done.Found && (e.Remove || len(e.Clear) > 0) {
		return o.missingError(e, done.Before)
	}
	was, is := "there was none", "gone"
	if !done.Before.Empty() {
		answer.Before = new(entryOf(e.Target, done.Before))
		was = "it was " + done.Before.String()
	}
	if !done.After.Empty() {
		answer.After = new(entryOf(e.Target, done.After))
		is = done.After.String()
	}
	if o.json() {
		return o.printJSON(answer)
	}
	of := describe(e.Target)
	if answer.DryRun {
		o.printf("%s: the override would be %s; %s; callers that are counted now: %d; nothing is changed", of, is, was, *answer.Callers)
		return nil
	}
	undo := "nothing is changed"
	switch {
	case e.Remove && done.Before.Empty():
		was, undo = "it was broken", "it is not written back"
	case answer.ID > 0:
		undo = fmt.Sprintf("to undo: ratectl undo %d", answer.ID)
	}
	o.printf("%s: the override is %s; %s; %s", of, is, was, undo)
	o.printf("%v", answer.Processes)
	if done.After.Block && e.Allow {
		o.printf("it is still blocked, which goes before: see ratectl unblock")
	}
	return nil
}

// missingError returns the error of an edit that was to remove something that does not exist.
func (o *operator) missingError(e override.Edit, before override.Change) error {
	of, what := describe(e.Target), strings.Join(e.Clear, " or ")
	has := ", and no override"
	if !before.Empty() {
		has = fmt.Sprintf(": its override is %v", before)
	}
	switch {
	case e.Remove:
		return nothingf("%s has no override in %q; ratectl override ls lists them", of, o.overrides)
	case slices.Equal(e.Clear, []string{"block"}):
		has += "; if the rule itself blocks it, ratectl reset ends that"
	}
	return nothingf("%s has no %s in %q%s", of, what, o.overrides, has)
}

// confirmation returns the question before an edit that concerns many callers, or refuses all of
// their calls. It is empty if none is needed.
func (o *operator) confirmation(e override.Edit) string {
	of, whole := describe(e.Target), !e.Keys || e.Pattern == "" || e.Pattern == "*"
	switch {
	case e.Rule == override.All && e.Set.Enabled != nil && !*e.Set.Enabled:
		return fmt.Sprintf("remove all limits of every program that reads %q", o.overrides)
	case e.Set.Max != nil && *e.Set.Max == 0, e.Block && whole:
		return "refuse all calls of " + of
	case e.Set.Mode != nil && !e.Set.Mode.Denies():
		return "refuse no call of " + of
	case whole && (e.Allow || e.Set.Enabled != nil && !*e.Set.Enabled):
		return "remove the limit of " + of
	}
	return ""
}

// describe names what an override is for.
func describe(t override.Target) string {
	switch {
	case t.Rule == override.All:
		return "all limits"
	case t.Keys && t.Pattern != "":
		return fmt.Sprintf("%s of rule %s", printable(t.Pattern), printable(t.Rule))
	}
	return "rule " + printable(t.Rule)
}

// callersOf counts the callers of a target that something is counted for.
func (o *operator) callersOf(ctx context.Context, t override.Target) (callers int64, err error) {
	groups := o.groups(func(d declared, group *runtime.KeyGroup) {
		if t.Rule == override.All || d.Name == t.Rule {
			group.Each = func(found runtime.FoundKey) {
				key, err := runtime.ParseKey(found.Text)
				if err != nil {
					return
				}
				if _, is := matching(map[string]bool{t.Pattern: true}, key.Pattern()); is || !t.Keys {
					callers++
				}
			}
		}
	})
	err = o.surveyed(ctx, groups)
	return callers, err
}

// author returns the author of a change, for the history.
func (o *operator) author() string { return cmp.Or(o.getenv("RATECTL_WHO"), o.getenv("USER")) }
