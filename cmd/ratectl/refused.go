package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime"
)

// A refusedCaller is how often, and in which minutes, a rule has refused a caller.
type refusedCaller struct {
	Rule    string        `json:"rule"`
	Key     string        `json:"key"`
	Refused int64         `json:"refused"`
	Spans   []refusedSpan `json:"spans"` // in the order of time
	text    string        // the key as processes tell it
}

// A refusedSpan is minutes that follow each other.
type refusedSpan struct {
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"` // of the last minute
	Refused int64     `json:"refused"`
}

// spanGap is how far minutes are apart that belong together: a process tells each minute, and a bit
// later each time.
const spanGap = time.Minute

func (c *refusedCaller) last() refusedSpan { return c.Spans[len(c.Spans)-1] }

func (c *refusedCaller) row() []string {
	spans := make([]string, len(c.Spans))
	for i, s := range c.Spans {
		spans[i] = s.String()
	}
	return rowOf(c.Rule, c.Key, c.Refused, strings.Join(spans, ", "))
}

// String says the beginning and the end. That is on the same day if it has no other.
func (s refusedSpan) String() string {
	const day, minute = "2006-01-02T", "15:04Z"
	from, to := s.Start.UTC(), s.End.UTC()
	text := from.Format(day+minute) + "/"
	if from.Format(day) != to.Format(day) {
		text += to.Format(day)
	}
	return text + to.Format(minute)
}

// A pastCommand is one that looks back.
type pastCommand struct {
	session
	secretFile string
	secret     []byte
}

func (c *pastCommand) secretFlag() cli.Flag {
	return c.sourced(text(&c.secretFile, "refused-secret-file", "`file` with the secret of runtime.WithRefusals, in place of RATECTL_REFUSED_SECRET"))
}

// refused returns the callers that were refused in a time up to now, by the clock of Redis, and how many
// refusals are of callers that are not told.
func (c *pastCommand) refused(ctx context.Context, since time.Duration) (callers []*refusedCaller, others int64,
	now time.Time, err error) {
	secret, err := c.program.secret("RATECTL_REFUSED_SECRET", c.secretFile)
	if err != nil {
		return nil, 0, now, err
	}
	c.secret = []byte(secret)
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if now, err = c.client.Time(ctx).Result(); err != nil {
		return nil, 0, now, err
	}
	minutes, err := c.store.RefusedMinutes(ctx, c.namespace, now.Add(-since))
	index := map[[2]string]*refusedCaller{}
	for _, m := range minutes {
		if m.Rule == "" {
			others += m.Count
			continue
		}
		of := index[[2]string{m.Rule, m.Key}]
		if of == nil {
			of = &refusedCaller{Rule: m.Rule, Key: m.Key, text: m.Key}
			if key, err := runtime.ParseKey(m.Key); err == nil {
				of.Key = key.Pattern()
			}
			index[[2]string{m.Rule, m.Key}], callers = of, append(callers, of)
		}
		of.add(m)
	}
	return callers, others, now, err
}

// add adds a minute, of which none is before those that are there.
func (c *refusedCaller) add(m runtime.RefusedMinute) {
	c.Refused += m.Count
	if n := len(c.Spans); n == 0 || m.Start.Sub(c.Spans[n-1].End) > spanGap {
		c.Spans = append(c.Spans, refusedSpan{Start: m.Start.UTC()})
	}
	last := &c.Spans[len(c.Spans)-1]
	last.End, last.Refused = m.Start.UTC().Add(time.Minute), last.Refused+m.Count
}

// hidden returns a key as processes tell it that hide keys by the secret.
func (c *pastCommand) hidden(key string) string { return spec.HiddenKey(c.secret, key) }

// A refusedCommand lists whom processes have refused lately.
type refusedCommand struct {
	pastCommand
	since time.Duration
	limit int
}

func (c *refusedCommand) about() about {
	return about{
		name: "refused", args: "[KEY]", short: "look back: which callers were refused, and when", needs: prints | needRedis, max: 1,
		long: "Lists the callers that all processes have refused in the time -since, the most refused first, or those with KEY in their keys: how often, and in which minutes, by the clock of Redis. A process tells each minute, so refusals may be of the minute before. Of each minute Redis keeps the 100 callers that were refused most; " +
			"the refusals of all others are told as a number. See runtime.RefusedMinute.",
		flags: []cli.Flag{duration(&c.since, "since", time.Hour, "how `long` to look back"), limitFlag(&c.limit), c.secretFlag()},
	}
}

func (c *refusedCommand) run(ctx context.Context, args []string) error {
	switch {
	case c.since <= 0:
		return usagef("-since %v: write a duration such as 3h", c.since)
	case len(args) > 0 && args[0] == "":
		return usagef("KEY is empty: a variable that is not set? Leave it out for all callers")
	}
	callers, others, now, err := c.refused(ctx, c.since)
	if err != nil {
		return err
	}
	told, askedFor := len(callers), ""
	if len(args) > 0 {
		askedFor = fmt.Sprintf(" for a key with %q", args[0])
		texts := spellings(args[0])
		callers = slices.DeleteFunc(callers, func(r *refusedCaller) bool {
			has, _ := holds(r.text, texts)
			return !has && !slices.ContainsFunc(texts, func(text string) bool { return r.text == c.hidden(text) })
		})
	}
	from := now.Add(-c.since).UTC().Format(time.RFC3339)
	if others > 0 {
		c.logger().Printf("and %d refusals since %s of callers of whom nothing else is told: they were not among the 100 that were refused most in a minute", others, from)
	}
	if len(callers) == 0 {
		return nothingf("no refusal is told%s since %s in %s; of all callers %d are; processes with rules tell each minute, unless they have WithoutReports or WithRefusals(0, nil)", askedFor, from, namespaces(c.namespace), told)
	}
	slices.SortStableFunc(callers, func(a, b *refusedCaller) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	shown := callers[:min(len(callers), c.limit)]
	if err := printEach(&c.printer, "RULE KEY REFUSED WHEN", shown, (*refusedCaller).row); err != nil {
		return err
	}
	if len(shown) < len(callers) {
		c.logger().Printf("these are the first %d of %d callers, see -limit", len(shown), len(callers))
	}
	return nil
}
