package ratepage

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime/internal/callers"
	"github.com/rategen/rategen/runtime/rule"
)

// refusedSpans are how long one may look back.
var refusedSpans = [...]struct {
	text string
	long time.Duration
}{{"1h", time.Hour}, {"3h", 3 * time.Hour}, {"24h", 24 * time.Hour}}

// refusedAge is for how long what was refused serves all viewers: processes tell each minute.
const refusedAge = 10 * time.Second

// A refusedView is the keys that all processes have refused most in a span.
type refusedView struct {
	Keys   []refusedKeyView `json:"keys"`
	Others int64            `json:"others"` // refusals of other keys
}

// A refusedKeyView is a key that was refused, between the first and the last minute of its refusals.
type refusedKeyView struct {
	Rule  string    `json:"rule"`
	Key   string    `json:"key"`
	Count int64     `json:"count"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
}

// serveRefused answers with what all processes have refused. A page that shows no keys has none.
func (p *Page) serveRefused(w http.ResponseWriter, r *http.Request) {
	since := r.URL.Query().Get("since")
	for i, span := range refusedSpans {
		if span.text == since {
			p.refusedCaches[i].serve(w, r, refusedAge, func(ctx context.Context, now time.Time) ([]byte, error) {
				return p.refused(ctx, now.Add(-span.long))
			})
			return
		}
	}
	writeFailure(w, badRequest("since is %.80q: there are 1h, 3h and 24h", since))
}

func (p *Page) refused(ctx context.Context, since time.Time) ([]byte, error) {
	v := refusedView{Keys: []refusedKeyView{}}
	if p.keys == nil {
		return encode(v), nil
	}
	counts := map[bridge.RefusedMinute]int64{} // limiters may share a namespace
	for _, l := range p.all() {
		minutes, err := bridge.LimiterOf(l).RefusedMinutes(ctx, since)
		if err != nil {
			return nil, err
		}
		for _, m := range minutes {
			if m.Shadow { // which has refused nobody
				continue
			}
			count := m.Count
			m.Count = 0
			counts[m] = max(counts[m], count)
		}
	}
	minutes := make([]bridge.RefusedMinute, 0, len(counts))
	for m, count := range counts {
		m.Count = count
		minutes = append(minutes, m)
	}
	slices.SortFunc(minutes, func(a, b bridge.RefusedMinute) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Key, b.Key))
	})
	told := operate.RefusalsOf(minutes)
	operate.MostRefused(told.Callers)
	v.Others = told.Others
	for i, c := range told.Callers {
		if i >= maxRefused {
			v.Others += c.Refused
			continue
		}
		v.Keys = append(v.Keys, refusedKeyView{c.Rule, p.shownKey(c.Key), c.Refused, c.Spans[0].Start, c.Last().End})
	}
	return encode(v), nil
}

// sketchSpan is for how long a span counts. What is shown are the refusals of
// the span that is under way and the one before.
const sketchSpan = 5 * time.Minute

// A sketch finds the keys that were refused most lately, in bounded memory.
type sketch struct{ now atomic.Pointer[spans] }

// Spans are the span that is under way, by its number, and the one before.
type spans struct {
	number          int64
	current, before *callers.Sketch
}

func newSketch() *sketch {
	s := new(sketch)
	s.now.Store(&spans{current: callers.NewSketch(), before: callers.NewSketch()})
	return s
}

func (s *sketch) at(now time.Time) *spans {
	number := now.UnixNano() / int64(sketchSpan)
	was := s.now.Load()
	if was.number == number {
		return was
	}
	next := &spans{number, callers.NewSketch(), callers.NewSketch()}
	if number == was.number+1 {
		next.before = was.current
	}
	s.now.CompareAndSwap(was, next)
	return s.now.Load()
}

func (s *sketch) add(rule string, key []byte, now time.Time) { s.at(now).current.Add(rule, key, -1, 1) }

// top returns the n keys that were refused most.
func (s *sketch) top(n int, now time.Time) []callers.Caller {
	at := s.at(now)
	sums := make(map[[2]string]callers.Caller)
	for _, r := range append(at.before.All(), at.current.All()...) {
		name := [2]string{r.Rule, r.Key}
		sum := sums[name]
		sums[name] = callers.Caller{Rule: r.Rule, Key: r.Key, Count: sum.Count + r.Count, Margin: sum.Margin + r.Margin}
	}
	all := make([]callers.Caller, 0, len(sums))
	for _, sum := range sums {
		all = append(all, sum)
	}
	return firstOf(all, n, callers.Compare)
}

type hotKeyView struct {
	Rule   string `json:"rule"`
	Key    string `json:"key"`
	Count  uint64 `json:"count"`
	Margin uint64 `json:"margin"` // by how much count may be too high
}

type hotKeysView struct {
	Keys []hotKeyView `json:"keys"`
	Span float64      `json:"span_ms"` // Count is of the last one or two of these
}

func (p *Page) refusedKeys(now time.Time) hotKeysView {
	v := hotKeysView{Keys: []hotKeyView{}, Span: milliseconds(sketchSpan)}
	if p.keys == nil {
		return v
	}
	for _, k := range p.keys.top(maxRefused, now) {
		v.Keys = append(v.Keys, hotKeyView{k.Rule, p.shownKey(keyText(k.Key)), k.Count, k.Margin})
	}
	return v
}

// keyText returns a key as JSON can hold it, and as an operator may type it.
func keyText(key string) string {
	if utf8.ValidString(key) {
		return key
	}
	if parsed, err := rule.ParseKey(key); err == nil {
		return parsed.Pattern()
	}
	return strings.ToValidUTF8(key, "\uFFFD")
}

func (p *Page) keysShown() string {
	if p.keys == nil {
		return "off"
	}
	if p.plain {
		return "plain"
	}
	return "masked"
}

// shownKey returns a key as the page shows it: masked, unless keys are shown as they are.
func (p *Page) shownKey(key string) string {
	if p.plain {
		return key
	}
	return maskKey(key)
}

// maskKey returns a key with the first and the last character of each part, so
// that somebody who knows a caller may recognise it.
func maskKey(key string) string {
	const hidden = "•••"
	parts := strings.Split(key, ":")
	for i, part := range parts {
		runes := []rune(part)
		n := len(runes)
		if part == "" {
			continue
		}
		if n < 5 || strings.Contains(part, "%") {
			parts[i] = hidden
		} else {
			parts[i] = string(runes[0]) + hidden + string(runes[n-1])
		}
	}
	return strings.Join(parts, ":")
}
