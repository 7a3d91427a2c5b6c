package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// An edited is an override before and after a change.
type edited struct {
	Before    *overrideEntry     `json:"before"` // null: there was none
	After     *overrideEntry     `json:"after"`  // null: there is none any more
	ID        int64              `json:"id"`     // of the change in the history; 0: nothing is changed
	DryRun    bool               `json:"dry_run,omitempty"`
	*affected                    // with -n
	Processes *operate.Following `json:"processes,omitempty"` // without -n: who was to follow the change
}

// An editing is what commands share that change an override.
type editing struct {
	changing
	wait  time.Duration // for the processes; 0: not at all
	lasts time.Duration // 0: not said
	until string
}

// changeFlags are those of every change.
func (c *editing) changeFlags() []cli.Flag {
	return append(c.tryFlags(), duration(&c.wait, "wait", 0, "how `long` to wait until it is in force in all processes that follow the hash"))
}

// endFlags are those of a change that may end, and may have to be confirmed.
func (c *editing) endFlags() []cli.Flag {
	return append(c.changeFlags(), c.yesFlag(),
		duration(&c.lasts, "for", 0, "for how `long`; then the previous permanent value holds"),
		text(&c.until, "until", "`time` of expiry, as 2026-11-22T15:00:00Z, or never for none"))
}

// edit changes an override, and prints it before and after.
func (c *editing) edit(ctx context.Context, e override.Edit) error {
	editor, err := c.editor()
	if err != nil {
		return err
	}
	if err := c.setExpiry(ctx, &e); err != nil {
		return err
	}
	e.Who, e.Why = c.author(), c.why
	following, err := c.following(ctx)
	if err != nil {
		return err
	}
	question, err := c.question(ctx, e, following)
	if err != nil {
		return err
	}
	e.Try = true
	if c.dry || question != "" && !c.yes { // what is wrong is not asked about
		tried, err := editor.Edit(ctx, e)
		if err != nil {
			return err
		}
		if c.dry {
			affected, err := c.affectedBy(ctx, e.Target, tried.After)
			if err != nil {
				return err
			}
			return c.printEdited(ctx, e, tried, edited{DryRun: true, affected: affected})
		}
		if err := c.confirm(ctx, "%s", question); err != nil {
			return err
		}
	}
	e.Try = false
	done, err := editor.Edit(ctx, e)
	if err != nil {
		return err
	}
	if err := c.printEdited(ctx, e, done, edited{ID: done.ID, Processes: &following}); err != nil {
		return err
	}
	return c.awaited(ctx)
}

// setExpiry sets the expiry of an edit, by the clock of Redis. Without a flag an expiry that is set
// already stays.
func (c *editing) setExpiry(ctx context.Context, e *override.Edit) error {
	switch {
	case c.lasts != 0 && c.until != "":
		return usagef("-for and -until both say when it ends: leave one out")
	case c.lasts < 0:
		return usagef("-for %v: write a duration such as 1h", c.lasts)
	case c.lasts > 0:
		now, err := c.Client.Time(ctx).Result()
		if err != nil {
			return err
		}
		e.Until = now.Add(c.lasts + time.Second - 1).Truncate(time.Second) // no earlier
	case c.until == "never":
		e.Endless = true
	case c.until != "":
		end, err := time.Parse(time.RFC3339, c.until)
		if err != nil || !time.Now().Before(end) {
			return usagef("-until %q: write never, or a time to come, such as %s", c.until, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		}
		e.Until = end
	}
	return nil
}

// question returns what is asked before an edit that concerns many callers, refuses all of their
// calls, is of a hash that nobody follows, or of a key that calls may not have. It is empty if nothing is.
func (c *editing) question(ctx context.Context, e override.Edit, f operate.Following) (string, error) {
	var all []string
	ask := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	of, whole := describe(e.Target), !e.Keys || e.Pattern == "" || e.Pattern == "*"
	off := e.Set.Enabled != nil && !*e.Set.Enabled
	switch {
	case e.Rule == override.All && off:
		ask("remove all limits of every program that reads %q", c.overrides)
	case e.Set.Max != nil && *e.Set.Max == 0, e.Block && whole:
		ask("refuse all calls of %s", of)
	case e.Set.Mode != nil && !e.Set.Mode.Denies():
		ask("refuse no call of %s", of)
	case whole && (e.Allow || off):
		ask("remove the limit of %s", of)
	}
	if e.Remove || len(e.Clear) > 0 {
		return strings.Join(all, ", and "), nil
	}
	if f.Processes > 0 && f.Follow == 0 {
		ask("write to %q, though %v", c.overrides, f)
	}
	why, err := c.unlikely(ctx, e.Target)
	if why != "" {
		ask("write an override for %s, though nothing is counted for that: %s", of, why)
	}
	return strings.Join(all, ", and "), err
}

// printEdited prints an override before and after an edit. It returns an error if there was
// nothing to remove.
func (c *editing) printEdited(ctx context.Context, e override.Edit, done override.Edited, answer edited) error {
	if !done.Found && (e.Remove || len(e.Clear) > 0) {
		return c.missing(e, done.Before)
	}
	was, is := "there was none", "gone"
	if e.Remove && done.Before.Empty() {
		was = "it was broken"
	}
	if !done.Before.Empty() {
		answer.Before = new(entryOf(e.Target, done.Before))
		was = "it was " + done.Before.String()
	}
	if !done.After.Empty() {
		answer.After = new(entryOf(e.Target, done.After))
		is = done.After.String()
	}
	c.warnOfOff(ctx, e.Target, done.After)
	c.warnOfBurst(e.Target, done.After)
	if c.json() {
		return c.printJSON(answer)
	}
	of := describe(e.Target)
	if answer.DryRun {
		c.printf("%s: the override would be %s; %s; %v; nothing is changed", of, is, was, answer.affected)
		return nil
	}
	undo := "nothing is changed"
	switch {
	case e.Remove && done.Before.Empty():
		undo = "it is not written back"
	case answer.ID > 0:
		undo = fmt.Sprintf("to undo: ratectl undo %d", answer.ID)
	}
	c.printf("%s: the override is %s; %s; %s", of, is, was, undo)
	c.printf("%v", answer.Processes)
	if done.After.Block && e.Allow {
		c.printf("it is still blocked, which goes before: see ratectl unblock")
	}
	return nil
}

// warnOfOff warns of an override that has no effect, since all limits or those of its rule are
// switched off.
func (c *editing) warnOfOff(ctx context.Context, t override.Target, after override.Change) {
	says, err := c.overridesNow(ctx)
	off := func(enabled *bool) bool { return enabled != nil && !*enabled }
	switch {
	case err != nil || t.Rule == override.All || after.Empty():
	case off(says.Enabled):
		c.logger().Print("it has no effect yet: all limits are switched off, until ratectl override rm '*'")
	case t.Keys && !after.Block && after.Enabled == nil && off(says.Rules[t.Rule].Enabled):
		c.logger().Printf("it has no effect yet: rule %[1]s is switched off, until ratectl override rm %[1]s -only enabled", printable(t.Rule))
	}
}

// warnOfBurst warns of a max below the burst that a rule declares, which stays.
func (c *editing) warnOfBurst(t override.Target, after override.Change) {
	d, err := c.rule(t.Rule)
	if err != nil {
		return // of all limits
	}
	if burst := atOnce(d); after.Max != nil && *after.Max > 0 && *after.Max < burst {
		window := d.Per()
		if after.Window != nil {
			window = operate.ShortDuration(*after.Window)
		}
		c.logger().Printf("rule %s declares burst=%d, which stays: a caller may still make %d calls at once, and then %d per %s", printable(t.Rule), burst, burst, *after.Max, window)
	}
}

// atOnce returns how much a bucket admits at once if its rule says so, or 0. The burst of a queue is
// how many may wait.
func atOnce(d operate.Rule) int64 {
	if d.Wait > 0 && d.Algorithm == runtime.LeakyBucket {
		return 0
	}
	return d.Burst
}

// missing returns the error of an edit that was to remove something that does not exist.
func (c *editing) missing(e override.Edit, before override.Change) error {
	of, has := describe(e.Target), ", and no override"
	if !before.Empty() {
		has = fmt.Sprintf(": its override is %v", before)
	}
	switch {
	case e.Remove:
		return nothingf("%s has no override in %q; ratectl override ls lists them", of, c.overrides)
	case slices.Equal(e.Clear, []string{"block"}):
		has += "; if the rule itself blocks it, ratectl reset ends that"
	}
	return nothingf("%s has no %s in %q%s", of, strings.Join(e.Clear, " or "), c.overrides, has)
}
