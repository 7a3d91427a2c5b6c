package ratepage

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
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
