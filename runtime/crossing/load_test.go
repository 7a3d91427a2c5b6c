package crossing

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A load is that of a program, which limits follow that adapt.
type load struct{ bits atomic.Uint64 }

// Factor implements [rule.Scaler].
func (l *load) Factor(rule.Load) float64 { return math.Float64frombits(l.bits.Load()) }

func (l *load) set(factor float64) { l.bits.Store(math.Float64bits(factor)) }

// A scale is a change of the load, by which limits have another factor soon.
type scale struct{ Factor float64 }

func (s scale) run(p *process) {
	p.note("load %v", s.Factor)
	p.history.scales = append(p.history.scales, s.Factor)
	p.program.load.set(s.Factor)
}

// adapts reports whether the max of any limit of a call may have changed with the load.
func (h *history) adapts(a *asked) bool {
	return len(h.scales) > 0 && slices.ContainsFunc(a.uses, func(u use) bool { return h.program.Rules[u.Rule].Adaptive != nil })
}

// highest returns the most that the load may make of a max.
func (h *history) highest(r *runtime.Rule, most int64) int64 {
	if r.Adaptive == nil || len(h.scales) == 0 {
		return most
	}
	return max(most, int64(math.Round(slices.Max(h.scales)*float64(most))))
}
