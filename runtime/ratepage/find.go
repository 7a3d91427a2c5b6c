package ratepage

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime"
)

// broughtAge is how far refusals are back that tell with which max calls come.
const broughtAge = time.Hour

// findKey finds the rules that have counted something for a key, or for which it is overridden.
func (p *Page) findKey(ctx context.Context, v *keyView, key *runtime.Key) {
	var found []namedRule
	brought := map[*runtime.Limiter]map[[2]string]int64{}
	for _, l := range p.all() {
		minutes, _ := bridge.LimiterOf(l).RefusedMinutes(ctx, time.Now().Add(-broughtAge)) // without, it is not known
		brought[l] = operate.RefusalsOf(minutes).Brought()
		for _, s := range l.Rules() {
			if s.KeyParts == 0 || s.KeyParts == 1+strings.Count(key.String(), ":") {
				found = append(found, namedRule{s, l})
			} else {
				v.Others++ // its keys are of another form
			}
		}
	}
	views := make([]limitView, len(found))
	var all sync.WaitGroup
	for i, f := range found {
		all.Go(func() { // calls share trips
			limit, asked := f.usageLimit(key, brought[f.limiter])
			usages, err := f.limiter.Usage(ctx, limit)
			views[i] = limitViewOf(&f, asked, usages)
			if err != nil {
				views[i] = limitView{Source: f.Rule.Source, Error: runtime.ClassOf(err).String()}
			}
			// Whom the max of the last refusal does not refuse, another may.
			views[i].Unknown = byCall(f.Rule) && views[i].Allowed && views[i].Counted && usages[0].Max == asked
			views[i].Rule = f.Rule.Name
		})
	}
	all.Wait()
	for i, l := range views {
		f := &found[i]
		overridden := f.Keys > 0 && f.Enabled && (!l.Counted || l.Limit != f.Max && !byCall(f.Rule) && f.Rule.Burst == 0)
		if l.Error != "" || l.Used > 0 || !l.Allowed || overridden {
			v.Limits = append(v.Limits, l)
		} else {
			v.Others++
		}
	}
	slices.SortStableFunc(v.Limits, func(a, b limitView) int { // what keeps the caller out is first
		return cmp.Or(cmp.Compare(b.rank(), a.rank()), strings.Compare(a.Rule, b.Rule))
	})
}

// rank orders limits by how much they keep a caller out.
func (l *limitView) rank() float64 {
	if l.Error == "" && !l.Allowed {
		return 2
	}
	if l.Limit == 0 {
		return 0
	}
	return float64(l.Used) / float64(l.Limit)
}
