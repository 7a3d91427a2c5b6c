package operate

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime/rule"
)

// Refusals are what processes have refused in some time up to now.
type Refusals struct {
	Callers []*RefusedCaller // in the order of their first refusals
	Others  int64            // refusals of callers that are not told
	Now     time.Time        // by the clock of Redis
}

// A RefusedCaller is how often, and in which minutes, a rule has refused a caller.
type RefusedCaller struct {
	Rule    string `json:"rule"`
	Key     string `json:"key"`
	Refused int64  `json:"refused"`
	Shadow  bool   `json:"shadow,omitempty"` // the limit was in shadow mode: it would have refused so many
	Max     *int64 `json:"max,omitempty"`    // of the last call, if calls bring their own
	Spans   []Span `json:"spans"`            // in the order of time
	Text    string `json:"-"`                // the key as processes tell it
	minutes []bridge.RefusedMinute
}

// A Span is minutes that follow each other.
type Span struct {
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"` // of the last minute
	Refused int64     `json:"refused"`
}

// spanGap is how far minutes are apart that belong together: a process tells each minute, and a bit
// later each time.
const spanGap = time.Minute

func (c *RefusedCaller) Last() Span { return c.Spans[len(c.Spans)-1] }

// String says the beginning and the end. That is on the same day if it has no other.
func (s Span) String() string {
	const day, minute = "2006-01-02T", "15:04Z"
	from, to := s.Start.UTC(), s.End.UTC()
	text := from.Format(day+minute) + "/"
	if from.Format(day) != to.Format(day) {
		text += to.Format(day)
	}
	return text + to.Format(minute)
}

// Refused returns the callers that were refused from a time before now on, up to another one, by the
// clock of Redis.
func (c *Core) Refused(ctx context.Context, since, until time.Duration) (_ Refusals, err error) {
	now, ask := time.Now(), bridge.LimiterOf(c.Limiter).RefusedMinutes
	if c.Client != nil {
		ask = func(ctx context.Context, since time.Time) ([]bridge.RefusedMinute, error) {
			return bridge.StoreOf(c.Store).RefusedMinutes(ctx, c.Namespace, since)
		}
		if now, err = c.Client.Time(ctx).Result(); err != nil {
			return Refusals{}, err
		}
	}
	minutes, err := ask(ctx, now.Add(-since))
	minutes = slices.DeleteFunc(minutes, func(m bridge.RefusedMinute) bool { return m.Start.After(now.Add(-until)) })
	refused := RefusalsOf(minutes)
	refused.Now = now
	return refused, err
}

// RefusalsOf returns the callers that were refused in minutes, which are in the order of time.
func RefusalsOf(minutes []bridge.RefusedMinute) (r Refusals) {
	index := map[bridge.RefusedMinute]*RefusedCaller{}
	for _, m := range minutes {
		if m.Rule == "" {
			r.Others += m.Count
			continue
		}
		id := bridge.RefusedMinute{Rule: m.Rule, Key: m.Key, Shadow: m.Shadow}
		of := index[id]
		if of == nil {
			of = &RefusedCaller{Rule: m.Rule, Key: KeyText(m.Key), Text: m.Key, Shadow: m.Shadow}
			index[id], r.Callers = of, append(r.Callers, of)
		}
		of.add(m)
	}
	return r
}

// Brought returns the max of the last refused call of each rule and key whose calls bring their own.
func (r Refusals) Brought() map[[2]string]int64 {
	brought := make(map[[2]string]int64)
	for _, c := range r.Callers {
		if c.Max != nil {
			brought[[2]string{c.Rule, c.Text}] = *c.Max
		}
	}
	return brought
}

// add adds a minute, of which none is before those that are there.
func (c *RefusedCaller) add(m bridge.RefusedMinute) {
	c.Refused += m.Count
	if m.Max >= 0 {
		c.Max = &m.Max
	}
	if n := len(c.Spans); n == 0 || m.Start.Sub(c.Spans[n-1].End) > spanGap {
		c.Spans = append(c.Spans, Span{Start: m.Start.UTC()})
	}
	c.minutes = append(c.minutes, m)
	last := &c.Spans[len(c.Spans)-1]
	last.End, last.Refused = m.Start.UTC().Add(time.Minute), last.Refused+m.Count
}

// Bars returns how often callers were refused in each minute, or hour of more than two, from a time before now
// on, up to another one. Of limits in shadow mode they are those that would have been refused.
func (r Refusals) Bars(callers []*RefusedCaller, since, until time.Duration) (bars []int64, step time.Duration) {
	step = time.Minute
	if since-until > 2*time.Hour {
		step = time.Hour
	}
	from := r.Now.Add(-since).Truncate(step)
	bars = make([]int64, r.Now.Add(-until).Sub(from)/step+1)
	for _, c := range callers {
		for _, m := range c.minutes {
			if at := m.Start.Sub(from) / step; at >= 0 && int(at) < len(bars) {
				bars[at] += m.Count
			}
		}
	}
	return bars, step
}

// MostRefused orders callers: those first that were refused, and of these those that were most.
func MostRefused(callers []*RefusedCaller) {
	slices.SortStableFunc(callers, func(a, b *RefusedCaller) int {
		return cmp.Or(TrueFirst(b.Shadow, a.Shadow), cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
}

// KeyText returns a key as an operator reads and types it.
func KeyText(text string) string {
	if key, err := rule.ParseKey(text); err == nil {
		return key.Pattern()
	}
	return text
}
