package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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
	return []string{c.Rule, c.Key, strconv.FormatInt(c.Refused, 10), strings.Join(spans, ", ")}
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

// PastRefusals are what processes tell of some time up to now, by the clock of Redis.
type pastRefusals struct {
	callers []*refusedCaller
	others  int64 // refusals of callers that are not told
	now     time.Time
	secret  []byte // by which processes hide keys
}

// hidden returns a key as processes tell it that hide keys by the secret.
func (r *pastRefusals) hidden(key string) string { return spec.HiddenKey(r.secret, key) }

// refused returns the callers that were refused.
func (s *session) refused(ctx context.Context, since time.Duration) (r pastRefusals, err error) {
	secret, err := s.secret("RATECTL_REFUSED_SECRET", s.secretFile)
	if err != nil {
		return r, err
	}
	r.secret = []byte(secret)
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if r.now, err = s.client.Time(ctx).Result(); err != nil {
		return r, err
	}
	minutes, err := s.store.RefusedMinutes(ctx, s.namespace, r.now.Add(-since))
	index := map[[2]string]*refusedCaller{}
	for _, m := range minutes {
		if m.Rule == "" {
			r.others += m.Count
			continue
		}
		of := index[[2]string{m.Rule, m.Key}]
		if of == nil {
			of = &refusedCaller{Rule: m.Rule, Key: m.Key, text: m.Key}
			if key, err := runtime.ParseKey(m.Key); err == nil {
				of.Key = key.Pattern()
			}
			index[[2]string{m.Rule, m.Key}], r.callers = of, append(r.callers, of)
		}
		of.add(m)
	}
	return r, err
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

// lookBack lists whom processes have refused lately.
func (s *session) lookBack(ctx context.Context, args []string) error {
	switch {
	case s.since <= 0:
		return usagef("-since %v: write a duration such as 3h", s.since)
	case len(args) > 0 && args[0] == "":
		return usagef("KEY is empty: a variable that is not set? Leave it out for all callers")
	}
	r, err := s.refused(ctx, s.since)
	if err != nil {
		return err
	}
	callers, askedFor := slices.Clone(r.callers), ""
	if len(args) > 0 {
		askedFor = fmt.Sprintf(" for a key with %q", args[0])
		texts := spellings(args[0])
		callers = slices.DeleteFunc(callers, func(c *refusedCaller) bool {
			has, _ := holds(c.text, texts)
			return !has && !slices.ContainsFunc(texts, func(text string) bool { return c.text == r.hidden(text) })
		})
	}
	from := r.now.Add(-s.since).UTC().Format(time.RFC3339)
	if r.others > 0 {
		s.logger().Printf("and %d refusals since %s of callers of whom nothing else is told: they were not among the 100 that were refused most in a minute", r.others, from)
	}
	if len(callers) == 0 {
		return nothingf("no refusal is told%s since %s in %s; of all callers %d are; processes with rules tell each minute, unless they have WithoutReports or WithRefusals(0, nil)", askedFor, from, namespaces(s.namespace), len(r.callers))
	}
	slices.SortStableFunc(callers, func(a, b *refusedCaller) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	shown := callers[:min(len(callers), int(s.limit))]
	if err := printEach(&s.printer, "RULE KEY REFUSED WHEN", shown, (*refusedCaller).row); err != nil {
		return err
	}
	if len(shown) < len(callers) {
		s.logger().Printf("these are the first %d of %d callers, see -limit", len(shown), len(callers))
	}
	return nil
}
