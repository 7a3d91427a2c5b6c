package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

// readSecret reads the secret by which keys are found that processes hide.
func (s *session) readSecret() error {
	secret, err := s.program.secret("RATECTL_REFUSED_SECRET", s.secretFile)
	s.Secret = []byte(secret)
	return err
}

// refused returns the callers that were refused from a time before now on, up to another one.
func (s *session) refusals(ctx context.Context, since, until time.Duration) (r operate.Refusals, err error) {
	if err := s.readSecret(); err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	return s.Refused(ctx, since, until)
}

func (s *session) listRefused(ctx context.Context, args []string) error {
	if s.since <= 0 || s.until < 0 || s.until >= s.since {
		return usagef("-since %v -until %v: write a duration such as 3h, and for -until a shorter one", s.since, s.until)
	}
	if len(args) > 0 && args[0] == "" {
		return usagef("KEY is empty: a variable that is not set? Leave it out for all callers")
	}
	refused, err := s.refusals(ctx, s.since, s.until)
	if err != nil {
		return err
	}
	callers, askedFor := refused.Callers, ""
	told := len(callers)
	if len(args) > 0 {
		askedFor = fmt.Sprintf(" for a key with %q", args[0])
		callers = s.SelectCallers(callers, args[0])
	}
	from := refused.Now.Add(-s.since).UTC().Format(time.RFC3339)
	if refused.Others > 0 {
		s.logger().Printf("and %d refusals since %s of callers of whom nothing else is told: they were not among the 100 that were refused most in a minute", refused.Others, from)
	}
	if s.since > bridge.KeepRefusals {
		s.logger().Printf("processes keep refusals for %v, unless runtime.WithRefusals says another time: what is older is not known", operate.ShortDuration(bridge.KeepRefusals))
	}
	if len(callers) == 0 {
		return nothingf("no refusal is told%s since %s in %s; of all callers %d are; processes with rules tell each minute, unless they have WithoutReports or WithRefusals(0, nil)", askedFor, from, operate.Namespaces(s.Namespace), told)
	}
	operate.MostRefused(callers)
	shown := callers[:min(len(callers), s.limit)]
	if err := printEach(&s.printer, "RULE KEY REFUSED WHEN", shown, refusedRow); err != nil {
		return err
	}
	bars, step := refused.Bars(callers, s.since, s.until)
	s.printf("%s %s from %s on, of up to %d", drawn(bars), map[bool]string{true: "an hour", false: "a minute"}[step == time.Hour], from, slices.Max(bars))
	if len(shown) < len(callers) {
		s.logger().Printf("these are the first %d of %d callers, see -limit", len(shown), len(callers))
	}
	return nil
}
