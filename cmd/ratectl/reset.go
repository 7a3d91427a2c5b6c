package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// A resetAnswer is what reset or release has done.
type resetAnswer struct {
	Rule     string        `json:"rule"`
	Key      string        `json:"key"`
	RedisKey string        `json:"redis_key"`
	Before   operate.State `json:"before"`
	DryRun   bool          `json:"dry_run,omitempty"`

	d     operate.Rule
	limit runtime.Limit
	of    string // how the key is called
}

// A resetCommand gives a key its whole limit back, and ends its block.
type resetCommand struct{ changing }

func (c *resetCommand) about() about {
	return about{
		name: "reset", args: "RULE [KEY]", short: "forget the counts of one caller", needs: judgesKeys, min: 1, max: 2, flags: c.flagsOfReset(),
		long: "Forgets the counts of one key, and ends its block. Asks for confirmation, and is in the history, but cannot be undone. A process that has refused the caller may do so for another second, see runtime.WithRefusalMemory.",
	}
}

func (c *resetCommand) flagsOfReset() []cli.Flag {
	return append([]cli.Flag{c.partsFlag(), c.yesFlag()}, c.tryFlags()...)
}

// named returns the key that arguments name as it is now, also if that is broken.
func (c *resetCommand) named(ctx context.Context, args []string) (*resetAnswer, error) {
	d, key, err := c.keyNamed(args)
	if err != nil {
		return nil, err
	}
	limit := c.LimitOf(d, key)
	a := &resetAnswer{Rule: d.Name, Key: key.Pattern(), RedisKey: bridge.LimiterOf(c.Limiter).RedisKey(limit), DryRun: c.dry, d: d, limit: limit}
	a.of = fmt.Sprintf("%s of rule %s", printed.Text(a.Key), d.Name)
	a.Before, err = c.State(ctx, d, key)
	return a, err
}

// does changes something after a question, or says what it would change.
func (c *resetCommand) does(ctx context.Context, a *resetAnswer, did string, do func(context.Context, runtime.Limit) error, question, would, is string) error {
	if !c.dry {
		if err := c.confirm(ctx, "%s", question); err != nil {
			return err
		}
		r := override.Record{Target: override.Target{Rule: a.Rule, Pattern: a.Key, Keys: true}, Who: c.author(), Why: c.why, Did: did, Before: fmt.Sprintf("%s, %d used", a.Before.State, a.Before.Used)}
		err := c.Noted(ctx, func(ctx context.Context) error { return c.Note(ctx, r) }, func(ctx context.Context) error { return do(ctx, a.limit) })
		if err != nil {
			return err
		}
		would = is
	}
	if c.json() {
		return c.printJSON(a)
	}
	c.printf("%s %s", a.of, would)
	return nil
}

func (c *resetCommand) run(ctx context.Context, args []string) error {
	a, err := c.named(ctx, args)
	if err != nil {
		return err
	}
	there, err := c.Client.Exists(ctx, a.RedisKey).Result()
	if err != nil {
		return err
	}
	if there == 0 {
		return nothingf("nothing is counted for %s in %s, under %s: there is nothing to reset", a.of, operate.Namespaces(c.Namespace), printed.Text(a.RedisKey))
	}
	if a.Before.State == "broken" { // that is a reason for a reset
		a.Before.RetryMS = new(int64)
	}
	state, used := a.Before.State, a.Before.Used
	err = c.does(ctx, a, "reset", c.Limiter.Reset, fmt.Sprintf("forget all that is counted for %s (%s, %d used)", a.of, state, used),
		fmt.Sprintf("would be reset; it is %s, with %d used; nothing is changed", state, used), fmt.Sprintf("is reset; it was %s, with %d used", state, used))
	if err == nil && a.Before.RetryMS == nil && !c.dry {
		c.printf("it is still blocked, by an override: see ratectl unblock")
	}
	return err
}

// A releaseCommand ends a hold of a key, and nothing else.
type releaseCommand struct{ resetCommand }

func (c *releaseCommand) about() about {
	return about{
		name: "release", args: "RULE [KEY]", short: "end a hold that a peer has asked for", needs: judgesKeys, min: 1, max: 2, flags: c.flagsOfReset(),
		long: "Ends the hold of one key of a rule for calls that go out, and leaves what is counted. Asks for confirmation, since the peer may mind. Waiting calls go on within a second or two. Such rules are in the listing of a live page.",
	}
}

func (c *releaseCommand) run(ctx context.Context, args []string) error {
	a, err := c.named(ctx, args)
	if err != nil {
		return err
	}
	if !a.d.Hold {
		return usagef("rule %s holds back no calls: it is not for calls that go out to a peer", a.Rule)
	}
	if a.Before.State != "held" {
		return nothingf("%s is not held back: it is %s%s", a.of, a.Before.State, because(a.Before))
	}
	retry := "; it was held back for another " + retryOf(a.Before)
	return c.does(ctx, a, "release", c.Limiter.Release, fmt.Sprintf("send calls again to a peer that has asked to hold back %s for another %s", a.of, retryOf(a.Before)),
		"would be released; nothing is changed"+retry, "is released"+retry)
}
