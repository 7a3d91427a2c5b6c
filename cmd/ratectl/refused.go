package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
)

func refusedRow(c *operate.RefusedCaller) []string {
	spans := make([]string, len(c.Spans))
	for i, s := range c.Spans {
		spans[i] = s.String()
	}
	return rowOf(c.Rule, c.Key, timesOf(c), strings.Join(spans, ", "))
}

// timesOf says how often a caller was refused, or would have been.
func timesOf(c *operate.RefusedCaller) string {
	if c.Shadow {
		return fmt.Sprintf("%d in shadow", c.Refused)
	}
	return fmt.Sprint(c.Refused)
}

// drawn returns numbers as bars, of which the highest is that of the greatest.
func drawn(bars []int64) string {
	most, text := slices.Max(bars), make([]rune, len(bars))
	for i, n := range bars {
		text[i] = '.'
		if n > 0 {
			text[i] = []rune("▁▂▃▄▅▆▇█")[(n*8-1)/most]
		}
	}
	return string(text)
}

// A pastCommand is one that looks back.
type pastCommand struct {
	session
	secretFile string
}

func (c *pastCommand) secretFlag() cli.Flag {
	return c.sourced(text(&c.secretFile, "refused-secret-file", "`file` with the secret of runtime.WithRefusals, in place of RATECTL_REFUSED_SECRET"))
}

// readSecret reads the secret by which keys are found that processes hide.
func (c *pastCommand) readSecret() error {
	secret, err := c.program.secret("RATECTL_REFUSED_SECRET", c.secretFile)
	c.Secret = []byte(secret)
	return err
}

// refused returns the callers that were refused from a time before now on, up to another one.
func (c *pastCommand) refused(ctx context.Context, since, until time.Duration) (r operate.Refusals, err error) {
	if err := c.readSecret(); err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.Core.Refused(ctx, since, until)
}

// A refusedCommand lists whom processes have refused lately.
type refusedCommand struct {
	pastCommand
	since, until time.Duration
	limit        int
}

func (c *refusedCommand) about() about {
	return about{
		name: "refused", args: "[KEY]", short: "look back: which callers were refused, and when", needs: prints | needRedis, max: 1,
		long: "Lists the callers that all processes have refused in the time -since, the most refused first, or those with KEY in their keys: how often, and in which minutes, by the clock of Redis. A process tells each minute, so refusals may be of the minute before. Of each minute Redis keeps the 100 callers that were refused most; " +
			"the refusals of all others are told as a number. Of limits in shadow mode it lists whom they would have refused. The bars are of each minute, or hour of more than two.",
		flags: []cli.Flag{duration(&c.since, "since", time.Hour, "how `long` to look back"), duration(&c.until, "until", 0, "how `long` ago to end"), limitFlag(&c.limit), c.secretFlag()},
	}
}

func (c *refusedCommand) run(ctx context.Context, args []string) error {
	if c.since <= 0 || c.until < 0 || c.until >= c.since {
		return usagef("-since %v -until %v: write a duration such as 3h, and for -until a shorter one", c.since, c.until)
	}
	if len(args) > 0 && args[0] == "" {
		return usagef("KEY is empty: a variable that is not set? Leave it out for all callers")
	}
	refused, err := c.refused(ctx, c.since, c.until)
	if err != nil {
		return err
	}
	callers, askedFor := refused.Callers, ""
	told := len(callers)
	if len(args) > 0 {
		askedFor = fmt.Sprintf(" for a key with %q", args[0])
		callers = c.SelectCallers(callers, args[0])
	}
	from := refused.Now.Add(-c.since).UTC().Format(time.RFC3339)
	if refused.Others > 0 {
		c.logger().Printf("and %d refusals since %s of callers of whom nothing else is told: they were not among the 100 that were refused most in a minute", refused.Others, from)
	}
	if c.since > bridge.KeepRefusals {
		c.logger().Printf("processes keep refusals for %v, unless runtime.WithRefusals says another time: what is older is not known", operate.ShortDuration(bridge.KeepRefusals))
	}
	if len(callers) == 0 {
		return nothingf("no refusal is told%s since %s in %s; of all callers %d are; processes with rules tell each minute, unless they have WithoutReports or WithRefusals(0, nil)", askedFor, from, operate.Namespaces(c.Namespace), told)
	}
	operate.MostRefused(callers)
	shown := callers[:min(len(callers), c.limit)]
	if err := printEach(&c.printer, "RULE KEY REFUSED WHEN", shown, refusedRow); err != nil {
		return err
	}
	bars, step := refused.Bars(callers, c.since, c.until)
	c.printf("%s %s from %s on, of up to %d", drawn(bars), map[bool]string{true: "an hour", false: "a minute"}[step == time.Hour], from, slices.Max(bars))
	if len(shown) < len(callers) {
		c.logger().Printf("these are the first %d of %d callers, see -limit", len(shown), len(callers))
	}
	return nil
}
