package main

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/rategen/rategen/internal/replay"
)

// A proposeCommand finds the max of a rule that would have refused few.
type proposeCommand struct {
	pastCommand
	changes
	compare bool
}

func (c *proposeCommand) about() about {
	return about{
		name: "propose", args: "RULE [RECORD...]", short: "find the max that would have refused none, 0.1% or 1%", needs: prints | mayRules | mayRedis | replays, min: 1, max: -1,
		long: "Replays records with one max after the other, and finds the lowest ones that would have refused none, at most 0.1% and at most 1% of the calls, and of the callers. The other flags of plan say what else is to be different, the algorithm for instance. The column AT MOST says of how many of all callers that holds, by 95%. It names the callers that need most, and estimates what Redis would hold if all were there at a time. " +
			"Without a RECORD it asks Redis what each caller of a sliding-log or sliding-counter has used in the last window, and how often it was refused: a first answer, and a partial one.",
		flags: append(c.changes.flags(), c.secretFlag(),
			yesNo(&c.compare, "compare", "propose for each algorithm")),
	}
}

func proposalRow(p replay.Proposal) []string {
	return []string{percent(p.Share) + " of the " + p.Of, p.Algorithm, strconv.FormatInt(p.Max, 10), strconv.FormatInt(p.Refused, 10),
		strconv.Itoa(p.Hit), percent(p.AtMost), strconv.FormatInt((p.Bytes+1023)/1024, 10) + " KiB"}
}

const proposalHead = "REFUSES ALGORITHM MAX CALLS CALLERS AT-MOST REDIS"

func (c *proposeCommand) run(ctx context.Context, args []string) error {
	if len(c.changes.max) > 0 {
		return usagef("propose finds the max: leave -max out, or ask plan what one does")
	}
	if len(args) == 1 {
		return c.fromRedis(ctx, args[0])
	}
	records, done, err := openRecords(args[1:])
	defer done()
	if err != nil {
		return err
	}
	change, err := c.change(ctx, &c.session, records)
	if err != nil {
		return err
	}
	p, err := records.Propose(ctx, args[0], change, c.compare)
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		return usagef("%v", err)
	}
	all, outliers, found, last := p.All, p.Outliers, p.Found, p.Last
	change.Tell(last)
	if err := printEach(&c.printer, proposalHead, all, proposalRow); err != nil || c.json() {
		return err
	}
	if found.About {
		c.printf("note: The numbers are about so: how long calls would have run that were refused nobody knows.")
	}
	c.printf("%d calls of %d callers from %s to %s", found.Calls, found.Callers, last.From.Format(time.RFC3339), last.To.Format(time.RFC3339))
	outliers = slices.DeleteFunc(outliers, func(o *replay.Side) bool { return o.Now == 0 }) // it refuses others less than before
	for _, o := range outliers[:min(5, len(outliers))] {
		c.printf("%s needs more than the max for 1%% of the calls: it refuses %d of its %d", o.Caller, o.Now, o.Calls)
	}
	for _, note := range last.Notes {
		c.printf("note: %s", note)
	}
	return nil
}
