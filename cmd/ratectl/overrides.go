package main

import (
	"context"
	"time"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/runtime/override"
)

func overrideRow(o operate.Override) []string {
	pattern, until := "-", "-"
	if o.Keys {
		pattern = printed.Text(o.Pattern)
	} else if o.Shares {
		pattern = "share " + printed.Text(o.Pattern)
	}
	if !o.Until.IsZero() {
		until = o.Until.UTC().Format(time.RFC3339)
		if !time.Now().Before(o.Until) {
			until += " (over)"
		}
	}
	said := o.Change
	if said.Then == (override.Values{}) {
		said.Until = time.Time{}
	}
	return []string{o.Rule, pattern, said.String(), until}
}

// An overrideListCommand prints the overrides in the hash.
type overrideListCommand struct{ session }

func (c *overrideListCommand) about() about {
	return about{
		name: "override ls", short: "list the overrides", needs: prints | needRedis,
		long: "Lists the hash, with expired overrides, and in how many of the processes that report it is in force. If a limiter would reject the hash, the error says why.",
	}
}

func (c *overrideListCommand) run(ctx context.Context, _ []string) error {
	entries, err := c.Overrides(ctx)
	if err != nil {
		return err
	}
	if err := printEach(&c.printer, "RULE KEYS OVERRIDE UNTIL", entries, overrideRow); err != nil || c.json() {
		return err
	}
	f, err := c.Following(ctx)
	if err != nil {
		return err
	}
	if f.Follow == 0 {
		c.printf("%v", f)
	} else {
		c.printf("%s", f.State())
	}
	return nil
}
