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

// A clearing is what reset or release has done to the counts of a key.
type clearing struct {
	Rule     string        `json:"rule"`
	Key      string        `json:"key"`
	RedisKey string        `json:"redis_key"`
	Before   operate.State `json:"before"`
	DryRun   bool          `json:"dry_run,omitempty"`
	d        operate.Rule
	key      *runtime.Key
}

// String names the key.
func (l *clearing) String() string {
	return fmt.Sprintf("%s of rule %s", printed.Text(l.Key), l.Rule)
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
func (c *resetCommand) named(ctx context.Context, args []string) (*clearing, error) {
	d, key, err := c.keyNamed(args)
	if err != nil {
		return nil, err
	}
	l := &clearing{Rule: d.Name, Key: key.Pattern(), RedisKey: bridge.LimiterOf(c.Limiter).RedisKey(c.LimitOf(d, key)), DryRun: c.dry, d: d, key: key}
	l.Before, err = c.State(ctx, d, key)
	return l, err
}

// clear does something to the counts after a question, or says what it would do.
func (c *resetCommand) clear(ctx context.Context, did string, l *clearing, question, would, is string) error {
	if !c.dry {
		if err := c.confirm(ctx, "%s", question); err != nil {
			return err
		}
		if err := c.Clear(ctx, did, l.d, l.key, l.Before, override.Record{Who: c.author(), Why: c.why}); err != nil {
			return err
		}
		would = is
	}
	if c.json() {
		return c.printJSON(l)
	}
	c.printf("%v %s", l, would)
	return nil
}

func (c *resetCommand) run(ctx context.Context, args []string) error {
	l, err := c.named(ctx, args)
	if err != nil {
		return err
	}
	there, err := c.Client.Exists(ctx, l.RedisKey).Result()
	if err != nil {
		return err
	}
	if there == 0 {
		return nothingf("nothing is counted for %v in %s, under %s: there is nothing to reset", l, operate.Namespaces(c.Namespace), printed.Text(l.RedisKey))
	}
	if l.Before.State == operate.Broken { // that is a reason for a reset
		l.Before.RetryMS = new(int64)
	}
	state, used := l.Before.State, l.Before.Used
	err = c.clear(ctx, operate.Reset, l, fmt.Sprintf("forget all that is counted for %v (%s, %d used)", l, state, used),
		fmt.Sprintf("would be reset; it is %s, with %d used; nothing is changed", state, used), fmt.Sprintf("is reset; it was %s, with %d used", state, used))
	if err == nil && l.Before.RetryMS == nil && !c.dry {
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
	l, err := c.named(ctx, args)
	if err != nil {
		return err
	}
	if !l.d.Hold {
		return usagef("rule %s holds back no calls: it is not for calls that go out to a peer", l.Rule)
	}
	if l.Before.State != operate.Held {
		return nothingf("%v is not held back: it is %s%s", l, l.Before.State, because(l.Before))
	}
	retry := "; it was held back for another " + retryOf(l.Before)
	return c.clear(ctx, operate.Release, l, fmt.Sprintf("send calls again to a peer that has asked to hold back %v for another %s", l, retryOf(l.Before)),
		"would be released; nothing is changed"+retry, "is released"+retry)
}
