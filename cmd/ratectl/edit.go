package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime/override"
)

// An edited is what a change has made of an override, or would.
type edited struct {
	Rule              string             `json:"rule,omitempty"` // of a change of several
	Before            *operate.Override  `json:"before"`         // null: there was none
	After             *operate.Override  `json:"after"`          // null: there is none any more
	ID                int64              `json:"id"`             // of the change in the history; 0: nothing is changed
	DryRun            bool               `json:"dry_run,omitempty"`
	*operate.Affected                    // of one, with -n
	Processes         *operate.Following `json:"processes,omitempty"` // of one, without -n: who was to follow the change
}

func (l edited) row() []string {
	says := func(o *operate.Override) string {
		if o == nil {
			return "-"
		}
		return o.Change.String()
	}
	return rowOf(l.Rule, says(l.Before), says(l.After))
}

func (s *session) end(e *override.Edit) error {
	if s.lasts != 0 && s.ends != "" {
		return usagef("-for and -until both say when it ends: leave one out")
	}
	if s.lasts < 0 {
		return usagef("-for %v: write a duration such as 1h", s.lasts)
	}
	if s.ends == "never" {
		e.Endless = true
	} else if s.ends != "" {
		end, err := time.Parse(time.RFC3339, s.ends)
		if err != nil || !time.Now().Before(end) {
			return usagef("-until %q: write never, or a time to come, such as %s", s.ends, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		}
		e.Until = end
	}
	e.For = s.lasts
	return nil
}

// edit changes an override, or those of several rules, whose max may be a share of the present one. It prints
// them before and after.
func (s *session) edit(ctx context.Context, e override.Edit, share float64) error {
	if err := s.end(&e); err != nil {
		return err
	}
	editor, err := s.Editor()
	if err != nil {
		return err
	}
	e.Who, e.Why = s.author(), s.why
	edits, several, err := s.Edits(ctx, operate.Edit{Edit: e, Scale: share})
	if err != nil {
		return err
	}
	following, err := s.Following(ctx)
	if err != nil {
		return err
	}
	printed := s.printEdited
	if several {
		printed = s.printSeveral
	} else {
		e = edits[0]
	}
	questions, err := s.Questions(ctx, e, len(edits), several, following)
	if err != nil {
		return err
	}
	e.Try = true
	if s.dry || len(questions) > 0 && !s.yes { // what is wrong is not asked about
		tried, _, err := editor.EditAll(ctx, e, edits)
		if err != nil {
			return err
		}
		if s.dry {
			return printed(ctx, edits, tried, edited{DryRun: true})
		}
		if err := s.confirm(ctx, "%s", strings.Join(questions, ", and ")); err != nil {
			return err
		}
	}
	e.Try = false
	done, id, err := editor.EditAll(ctx, e, edits)
	if err != nil {
		return err
	}
	if err := printed(ctx, edits, done, edited{ID: id, Processes: &following}); err != nil {
		return err
	}
	return s.awaited(ctx)
}

// printEdited prints an override before and after an edit. It returns an error if there was
// nothing to remove.
func (s *session) printEdited(ctx context.Context, edits []override.Edit, all []override.Edited, answer edited) (err error) {
	e, done := edits[0], all[0]
	if !done.Found && (e.Remove || len(e.Clear) > 0) {
		return s.missing(e, done.Before)
	}
	was, is := "there was none", "gone"
	if e.Remove && done.Before.Empty() {
		was = "it was broken"
	}
	if answer.Before = entryOf(e.Target, done.Before); answer.Before != nil {
		was = "it was " + done.Before.String()
	}
	if answer.After = entryOf(e.Target, done.After); answer.After != nil {
		is = done.After.String()
	}
	if answer.DryRun {
		if answer.Affected, err = s.Affected(ctx, e.Target, done.After); err != nil {
			return err
		}
	}
	s.WithoutEffect(ctx, edits, all)
	if s.json() {
		return s.printJSON(answer)
	}
	of := operate.TargetText(e.Target)
	if answer.DryRun {
		s.printf("%s: the override would be %s; %s; %v; nothing is changed", of, is, was, answer.Affected)
		return nil
	}
	undo := "nothing is changed"
	if e.Remove && done.Before.Empty() {
		undo = "it is not written back"
	} else if answer.ID > 0 {
		undo = fmt.Sprintf("to undo: ratectl undo %d", answer.ID)
	}
	s.printf("%s: the override is %s; %s; %s", of, is, was, undo)
	s.printf("%v", answer.Processes)
	if done.After.Block && e.Allow {
		s.printf("it is still blocked, which goes before: see ratectl unblock")
	}
	return nil
}

// missing returns the error of an edit that was to remove something that does not exist.
func (s *session) missing(e override.Edit, before override.Change) error {
	of, has := operate.TargetText(e.Target), ", and no override"
	if !before.Empty() {
		has = fmt.Sprintf(": its override is %v", before)
	}
	if e.Remove {
		return nothingf("%s has no override in %q; ratectl override ls lists them", of, s.Hash)
	}
	if slices.Equal(e.Clear, []string{"block"}) {
		has += "; if the rule itself blocks it, ratectl reset ends that"
	}
	return nothingf("%s has no %s in %q%s", of, strings.Join(e.Clear, " or "), s.Hash, has)
}

func entryOf(t override.Target, c override.Change) *operate.Override {
	if c.Empty() {
		return nil
	}
	return &operate.Override{Entry: override.Entry{Target: t, Change: c}}
}

// printSeveral prints the overrides of all rules that start alike before and after an edit.
func (s *session) printSeveral(ctx context.Context, edits []override.Edit, done []override.Edited, answer edited) error {
	lines := make([]edited, len(done))
	for i, d := range done {
		lines[i] = edited{Rule: edits[i].Rule, Before: entryOf(edits[i].Target, d.Before), After: entryOf(edits[i].Target, d.After), ID: answer.ID, DryRun: answer.DryRun}
	}
	s.WithoutEffect(ctx, edits, done)
	undo := "nothing is changed"
	if answer.ID > 0 {
		undo = fmt.Sprintf("to undo all of it: ratectl undo %d", answer.ID)
	}
	err := printEach(&s.printer, "RULE BEFORE AFTER", lines, edited.row)
	s.printf("%s", undo)
	return err
}

// awaited waits, if that is wanted, until a change is in force in all processes that follow it and live.
func (s *session) awaited(ctx context.Context) error {
	if s.wait <= 0 || s.dry {
		return nil
	}
	f, err := s.Await(ctx, s.wait)
	if err != nil {
		return err
	}
	if f.Follow == 0 || f.InForce < f.Follow {
		return foreign{fmt.Errorf("after %v it is %s: see ratectl processes", s.wait, f.State())}
	}
	s.printf("%s", f.State())
	return nil
}
