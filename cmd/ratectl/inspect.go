package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"
)

// An inspected is all that is known about one key.
type inspected struct {
	keyState
	Namespace string          `json:"namespace"`
	RedisKey  string          `json:"redis_key"`
	Exists    bool            `json:"exists"` // something is counted or kept for it
	Bytes     int64           `json:"bytes"`
	ExpiryMS  int64           `json:"expiry_ms"` // -1: it has no expiry
	Declared  string          `json:"declared"`  // file and line
	Overrides []overrideEntry `json:"overrides"` // those in force for the key, of the rule and of one pattern
}

// An inspectCommand prints what is known about a key.
type inspectCommand struct{ session }

func (c *inspectCommand) about() about {
	return about{
		name: "inspect", args: "RULE [KEY]", short: "show all that is known about one caller", needs: judgesKeys, min: 1, max: 2,
		long:  "Shows what a call of cost 1 would find now, without charging it, the key in Redis and its overrides.",
		flags: []cli.Flag{c.partsFlag(), c.nearFlag(), c.maxFlag()},
	}
}

func (c *inspectCommand) run(ctx context.Context, args []string) error {
	d, limit, key, err := c.limitNamed(args)
	if err != nil {
		return err
	}
	s := inspected{Namespace: c.namespace, RedisKey: c.limiter.RedisKey(limit), Declared: d.place}
	if s.keyState, err = c.stateOrBroken(ctx, d, key); err != nil {
		return err
	}
	expiry, err := c.client.PTTL(ctx, s.RedisKey).Result()
	if err != nil {
		return err
	}
	if s.Exists = expiry != -2; s.Exists {
		s.ExpiryMS = expiry.Milliseconds()
		if expiry < 0 { // -1 ns says that there is none
			s.ExpiryMS = -1
		}
		s.Bytes, _ = c.client.MemoryUsage(ctx, s.RedisKey).Result() // not every user may ask
	}
	entries, err := c.decidingEntries(ctx)
	if err != nil {
		return err
	}
	s.Overrides = inForce(entries, d, key)
	if c.json() {
		return c.printJSON(s)
	}
	return c.print(s, d)
}

func (c *inspectCommand) print(s inspected, d declared) error {
	state, row := s.State+s.because(), s.row()
	if s.Shadow && s.State != "off" {
		state += ", but the rule is in shadow mode and refuses nobody"
	}
	limit := "the limit is removed"
	switch {
	case s.Limit != nil:
		limit = fmt.Sprintf("%d, %d left", *s.Limit, *s.Remaining)
	case s.State == "broken":
		limit = "not known"
	case s.State != "off": // and calls bring their own
		limit = "each call brings its own, " + d.byCall + ": say which with -max"
	}
	kept := "nothing is kept for it in " + namespaces(s.Namespace)
	if s.Exists {
		kept = fmt.Sprintf("%d bytes, gone in %v", s.Bytes, shortDuration(time.Duration(s.ExpiryMS)*time.Millisecond))
		if s.ExpiryMS < 0 {
			kept = fmt.Sprintf("%d bytes, without an expiry: see ratectl fix-expiry", s.Bytes)
		}
	}
	rows := [][]string{
		{"rule", s.Rule + ", " + s.Declared}, {"counts as", d.Algorithm.String() + " over " + d.per()}, {"key", s.Key}, {"state", state}, {"limit", limit},
		{"used", s.used()}, {"retry after", row[3]}, {"reset after", row[4]},
		{"redis key", s.RedisKey}, {"redis", kept},
	}
	if c.overrides == "" {
		rows = append(rows, []string{"override", "not read: -overrides names the hash"})
	}
	for _, e := range s.Overrides {
		rows = append(rows, []string{"override", e.describe()})
	}
	return c.printTable("", rows)
}

// A usageCommand prints what is left to a caller.
type usageCommand struct{ session }

func (c *usageCommand) about() about {
	return about{
		name: "usage", args: "RULE [KEY]", short: "show what is left to one caller", needs: judgesKeys, min: 1, max: 2,
		long:  "Shows the limit, how much of it is used and left, the window or period, and when it is whole again, and what was used of the last periods if the rule keeps that, without charging anything.",
		flags: []cli.Flag{c.partsFlag(), c.nearFlag(), c.maxFlag()},
	}
}

func (c *usageCommand) run(ctx context.Context, args []string) error {
	d, _, key, err := c.limitNamed(args)
	if err != nil {
		return err
	}
	s, err := c.stateOrBroken(ctx, d, key)
	if err == nil && s.State == "broken" {
		err = fmt.Errorf("%s of rule %s is broken%s", printable(s.Key), d.Name, s.because())
	}
	if err != nil {
		return err
	}
	err = printEach(&c.printer, "LIMIT USED LEFT WINDOW RESET STATE", []keyState{s}, func(s keyState) []string {
		limit, left := "-", "-"
		if s.Limit != nil {
			limit, left = strconv.FormatInt(*s.Limit, 10), strconv.FormatInt(*s.Remaining, 10)
		}
		row := s.row()
		return []string{limit, s.used(), left, s.Window, row[4], row[1]}
	})
	if err != nil || c.json() || len(s.Past) == 0 {
		return err
	}
	var rows [][]string
	for _, p := range s.Past {
		rows = append(rows, []string{p.Start.Format(time.RFC3339), p.End.Format(time.RFC3339), strconv.FormatInt(p.Used, 10)})
	}
	return c.printTable("START END USED", rows)
}
