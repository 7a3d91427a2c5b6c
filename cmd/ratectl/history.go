package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime/override"
)

func recordRow(r operate.Record) []string {
	why, did := r.Why, r.Did
	if r.Undoes > 0 {
		why = strings.TrimSuffix(fmt.Sprintf("undo %d: %s", r.Undoes, why), ": ")
	}
	dash := func(said string) string {
		if said == "" {
			return "-"
		}
		return string(operate.JSONOf(said))
	}
	if r.Several > 0 {
		did = fmt.Sprintf("%d overrides", r.Several)
	}
	return rowOf(r.ID, r.At.UTC().Format(time.RFC3339), cmp.Or(r.Who, "-"), operate.TargetText(r.Target), dash(r.Before), cmp.Or(did, dash(r.After)), cmp.Or(why, "-"))
}

// A historyCommand prints the last changes of the hash.
type historyCommand struct {
	session
	operate.Past
}

func (c *historyCommand) about() about {
	return about{
		name: "history", short: "list what operators have changed, the last one first", needs: prints | needRedis,
		long: "Lists the changes of overrides, resets, releases, imports and expiries by ratectl, live pages and override.Editor of the last 30 days, and 4 MiB of them at most: who, when, why, before and after. A change of several overrides is one. Changes by other programs are not recorded.",
		flags: []cli.Flag{
			limitFlag(&c.Most), duration(&c.Since, "since", 0, "how `long` to look back"), duration(&c.Until, "until", 0, "how `long` ago to end"),
			text(&c.Who, "who", "only changes by this `name`, or by those that start so and end with *"), text(&c.Past.Rule, "rule", "only changes of this `rule`, or of those that start so and end with *"), text(&c.Key, "key", "only changes of keys with this `text`"),
		},
	}
}

func (c *historyCommand) run(ctx context.Context, _ []string) error {
	if c.Since < 0 || c.Until < 0 || c.Since > 0 && c.Until >= c.Since {
		return usagef("-since %v -until %v: write a duration such as 3h, and for -until a shorter one", c.Since, c.Until)
	}
	records, all, err := c.History(ctx, c.Past)
	if err != nil {
		return err
	}
	if err := printEach(&c.printer, "CHANGE AT WHO OF BEFORE AFTER WHY", records, recordRow); err != nil {
		return err
	}
	if all > len(records) {
		c.logger().Printf("these are the last %d of %d changes, see -limit", len(records), all)
	}
	return nil
}

// An undoCommand takes a change back.
type undoCommand struct{ editing }

func (c *undoCommand) about() about {
	return about{
		name: "undo", args: "[CHANGE]", short: "undo a change of overrides", needs: prints | needRedis | mayRules, max: 1, flags: append(c.changeFlags(), c.yesFlag()),
		long: "Restores the override from before the CHANGE, a number of history, by default the last change that is no undo and is not undone. Asks for confirmation if somebody else has made it. Refuses, and says who, if the same was changed since. An undo can be undone by its number; what was done to counts cannot.",
	}
}

func (c *undoCommand) run(ctx context.Context, args []string) (err error) {
	id := int64(0)
	if len(args) > 0 {
		if id, err = strconv.ParseInt(args[0], 10, 64); err != nil || id < 1 {
			return usagef("undo %q: write the number of a change, as ratectl history shows it", args[0])
		}
	}
	by := override.Edit{Who: c.author(), Why: c.why, Try: c.dry}
	undone, err := c.Undo(ctx, id, by, func(r override.Record) error {
		if r.Who == by.Who {
			return nil
		}
		return c.confirm(ctx, "undo change %d of %s, by %s%s", r.ID, operate.TargetText(r.Target), cmp.Or(r.Who, "somebody"), strings.TrimSuffix(": "+r.Why, ": "))
	})
	if errors.Is(err, override.ErrNoRecord) {
		err = nothingf("%v; ratectl history lists those that there are", err)
	}
	if err != nil {
		return err
	}
	if c.json() {
		return cmp.Or(c.printJSON(struct {
			Undone operate.Record `json:"undone"`
			DryRun bool           `json:"dry_run,omitempty"`
		}{undone, c.dry}), c.awaited(ctx))
	}
	verb, end := "is", ""
	if c.dry {
		verb, end = "would be", "; nothing is changed"
	}
	who := cmp.Or(undone.Who, "somebody")
	if undone.Several > 0 {
		c.printf("%d overrides %s again as before change %d, by %s%s", undone.Several, strings.ReplaceAll(verb, "is", "are"), undone.ID, who, end)
		return c.awaited(ctx)
	}
	c.printf("%s: the override %s %s again; %d, by %s, had made it %s%s", operate.TargetText(undone.Target), verb, cmp.Or(undone.Before, "gone"), undone.ID, who, cmp.Or(undone.After, "go"), end)
	return c.awaited(ctx)
}
