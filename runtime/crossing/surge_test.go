package crossing

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A surge is one call on each of many keys of a rule with a period at once, each of which takes its
// key over the shares that are told.
type surge struct {
	Rule, Keys int
	Cost       int64
}

// surges reports whether the shares of a rule are told when a call passes them, and known: no
// lease takes more, no load moves the max, and nobody else is counted.
func (p *program) surges(declared int) bool {
	r := p.Rules[declared]
	return r.Period != rule.NoPeriod && r.Lease == 0 && r.Adaptive == nil && r.Mode.Refuses() && !p.shares(declared) && p.Cap == nil
}

// drawSurge draws a surge: more than fit into a batch or a queue.
func drawSurge(t *rapid.T, p *program) surge {
	rule := rapid.SampledFrom(slices.DeleteFunc(indexes(p.Rules), func(i int) bool { return !p.surges(i) })).Draw(t, "rule")
	return surge{Rule: rule, Keys: rapid.SampledFrom([]int{40, 130, 300}).Draw(t, "keys"), Cost: max(1, p.Rules[rule].Max-rapid.Int64Range(0, 1).Draw(t, "less"))}
}

// A surged is a decision of a surge. Each has a key of its own.
type surged struct {
	rule, key string
	cost      int64
	d         runtime.Decision
}

func (s surge) run(p *process) {
	number := p.surges.Add(1)
	p.note("# take on each of many keys at once: %+v", s)
	var calls sync.WaitGroup
	for i := range s.Keys {
		key := fmt.Sprint("surge ", number, "-", i)
		limit := p.program.Rules[s.Rule].Limit(runtime.NewKey().AddString(key)).WithCost(s.Cost)
		calls.Go(func() {
			d, err := p.limiter.Take(context.Background(), limit)
			if err != nil || d.Source != rule.SourceStore {
				return
			}
			p.history.mu.Lock()
			p.history.surged = append(p.history.surged, surged{p.program.Rules[s.Rule].Name, key, s.Cost, d})
			p.history.mu.Unlock()
			if p.program.Rules[s.Rule].Reserve > 0 {
				_ = p.limiter.Settle(context.Background(), d, s.Cost) // which others judge
			}
		})
	}
	p.calls.Go(calls.Wait)
}

// surgesTold wants each share that a call of a surge has passed to be told once, always. A fault
// may lose what is told, with the answer, but never tells it twice.
func (o *oracle) surgesTold() {
	times := map[string]int{}
	name := func(rule, key string, percent int) string { return rule + " " + key + " " + strconv.Itoa(percent) }
	for _, ev := range o.told {
		times[name(ev.Rule, ev.Key, ev.Percent)]++
	}
	for _, s := range o.surged {
		for _, percent := range []int{80, 100} {
			want := 0
			if 100*s.cost >= int64(percent)*s.d.Limit && s.d.Limit > 0 {
				want = 1
			}
			if got := times[name(s.rule, s.key, percent)]; got > want || got < want && len(o.faults) == 0 {
				o.wrong("many keys that pass a share at once are told once each", "%s %q: %d percent of %d by %d is told %d times, want %d", s.rule, s.key, percent, s.d.Limit, s.cost, got, want)
				return
			}
		}
	}
}
