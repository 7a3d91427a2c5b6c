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

type edited struct {
	Before            *operate.Override  `json:"before"` // null: there was none
	After             *operate.Override  `json:"after"`  // null: there is none any more
	ID                int64              `json:"id"`     // of the change in the history; 0: nothing is changed
	DryRun            bool               `json:"dry_run,omitempty"`
	*operate.Affected                    // with -n
	Processes         *operate.Following `json:"processes,omitempty"` // without -n: who was to follow the change
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
	e.Who, e.Why, e.Try = s.author(), s.why, s.dry
	edits, several, err := s.Edits(ctx, operate.Edit{Edit: e, Scale: share})
	if err != nil {
		return err
	}
	if several {
		return s.several(ctx, editor, e, edits)
	}
	e = edits[0]
	following, err := s.Following(ctx)
	if err != nil {
		return err
	}
	question, err := s.Questions(ctx, e, following)
	if err != nil {
		return err
	}
	e.Try = true
	if s.dry || len(question) > 0 && !s.yes { // what is wrong is not asked about
		tried, err := editor.Edit(ctx, e)
		if err != nil {
			return err
		}
		if s.dry {
			affected, err := s.Affected(ctx, e.Target, tried.After)
			if err != nil {
				return err
			}
			return s.printEdited(ctx, e, tried, edited{DryRun: true, Affected: affected})
		}
		if err := s.confirm(ctx, "%s", strings.Join(question, ", and ")); err != nil {
			return err
		}
	}
	e.Try = false
	done, err := editor.Edit(ctx, e)
	if err != nil {
		return err
	}
	if err := s.printEdited(ctx, e, done, edited{ID: done.ID, Processes: &following}); err != nil {
		return err
	}
	return s.awaited(ctx)
}

// printEdited prints an override before and after an edit. It returns an error if there was
// nothing to remove.
func (s *session) printEdited(ctx context.Context, e override.Edit, done override.Edited, answer edited) error {
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
	s.WithoutEffect(ctx, []override.Edit{e}, []override.Edited{done})
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

// A severalLine is the override of one of several rules, before and after a change of all.
type severalLine struct {
	Rule   string            `json:"rule"`
	Before *operate.Override `json:"before"`
	After  *operate.Override `json:"after"`
	ID     int64             `json:"id"` // of the change in the history; 0: nothing is changed
}

func (l severalLine) row() []string {
	says := func(o *operate.Override) string {
		if o == nil {
			return "-"
		}
		return o.Change.String()
	}
	return rowOf(l.Rule, says(l.Before), says(l.After))
}

// several changes the overrides of all rules that start alike, as one change.
func (s *session) several(ctx context.Context, editor *override.Editor, by override.Edit, edits []override.Edit) error {
	if !s.dry {
		which, start := "all that are listed", strings.TrimSuffix(by.Rule, "*")
		if start != "" {
			which = fmt.Sprintf("those whose names start with %q", start)
		}
		if err := s.confirm(ctx, "change %d rules, %s, in every program that reads %q", len(edits), which, s.Hash); err != nil {
			return err
		}
	}
	done, id, err := editor.EditAll(ctx, by, edits)
	if err != nil {
		return err
	}
	lines := make([]severalLine, len(done))
	for i, d := range done {
		lines[i] = severalLine{edits[i].Rule, entryOf(edits[i].Target, d.Before), entryOf(edits[i].Target, d.After), id}
	}
	s.WithoutEffect(ctx, edits, done)
	if err := printEach(&s.printer, "RULE BEFORE AFTER", lines, severalLine.row); err != nil {
		return err
	}
	undo := "nothing is changed"
	if id > 0 {
		undo = fmt.Sprintf("to undo all of it: ratectl undo %d", id)
	}
	s.printf("%s", undo)
	return s.awaited(ctx)
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
