package crossing

import (
	"cmp"
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// drawDivision may have tenants share a bucket. It has a burst of its own, so that no max makes it too small
// for that.
func (s *scope) drawDivision(t *rapid.T, r *runtime.Rule) {
	bucket := r.Algorithm == runtime.TokenBucket || r.Algorithm == runtime.LeakyBucket
	if !bucket || r.Wait > 0 || r.Lease > 0 || rapid.IntRange(0, 3).Draw(t, "divided") == 0 {
		return
	}
	r.Burst, r.Headroom = rapid.Int64Range(4, 16).Draw(t, "divided burst"), -1
	if rapid.Bool().Draw(t, "declared headroom") {
		r.Headroom = rapid.Int64Range(1, spec.MostHeadroom(r.Burst, r.Max)).Draw(t, "headroom")
	}
}

// divides reports whether tenants share a limit of a call.
func (o *oracle) divides(a *asked) bool {
	return slices.ContainsFunc(a.uses, func(u use) bool { return u.Weight > 0 })
}

// kept returns how much of a bucket is kept from a call at most, for tenants that have used less than its
// own: all of the headroom, less what the call's tenant is behind the heaviest for sure.
func (o *oracle) kept(a *asked, u use, r *runtime.Rule, l limited) float64 {
	if u.Weight == 0 {
		return 0
	}
	burst := l.capacity
	headroom := float64(spec.Headroom(r.Headroom, burst, l.max))
	for _, t := range o.terms(u, a.from(o.history), a.at) {
		if !o.adapts(a) && !l.local {
			headroom = max(headroom, float64(spec.Headroom(r.Headroom, burst, t.max)))
		}
	}
	most := min(headroom, float64(burst-u.Cost))
	if a.d.Source != rule.SourceStore { // as it was when the refusal was remembered
		return most
	}
	own, heaviest := o.standing(a, u, l.window)
	behind := float64(u.Weight)*(heaviest-own) - float64(u.Cost)
	if behind <= 0 {
		return most
	}
	const rounding = 0.01
	return min(most, max(0, most-behind*max(1, 2*headroom/(float64(u.Weight)*heaviest)))+rounding)
}

// standing returns what the tenant of a use has used by its weight at most, and the heaviest one for sure, when
// a call was decided. What was used decays by 1/e in a window, and is nothing after one without a charge, nor
// when the window is another one.
func (o *oracle) standing(a *asked, u use, longest time.Duration) (own, heaviest float64) {
	left := func(from, to, window time.Duration) float64 {
		return math.Exp(-float64(max(0, to-from)) / float64(window))
	}
	window := longest // the shortest one
	for _, t := range o.termsOfKey(u, 0, a.at) {
		window = min(window, time.Duration(t.window)*time.Microsecond)
	}
	anew := func(from, to time.Duration) bool {
		all := o.termsOfKey(u, from, to)
		return to-from >= window-time.Millisecond || slices.ContainsFunc(all, func(t terms) bool { return t.window != all[0].window })
	}
	sure := map[int]float64{} // by tenant, as of last
	last := time.Duration(-1)
	before := slices.Clone(o.asked)
	slices.SortStableFunc(before, func(b, c *asked) int { return cmp.Compare(b.at, c.at) })
	for _, c := range before {
		for i, v := range c.uses {
			if c == a || v.Key != u.Key || !o.program.alike(v.Rule, u.Rule) || v.Weight == 0 {
				continue
			}
			if v.Tenant == u.Tenant && c.start <= a.at && (c.maybeCharged(i) || o.parted(c, a)) {
				at := c.at
				if c.settledAt(i) > v.Cost || c.left() {
					at = a.at // it may count as of now
				}
				own += float64(max(v.Cost, c.settledAt(i))) / float64(v.Weight) * left(at, a.from(o.history), longest)
			}
			least := v.Cost
			if s := c.settled; s.tried && s.cost[i] >= 0 {
				least = min(least, s.cost[i])
			}
			if !c.charged(i) || c.left() || c.at >= a.start || o.forgotten(u, c.start, a.at) || c.reported[i].source != rule.SourceStore {
				continue
			}
			if anew(last, c.from(o.history)) || anew(c.from(o.history), c.at) {
				clear(sure)
			} else {
				for tenant := range sure {
					sure[tenant] *= left(last, c.at, window)
				}
			}
			last = c.at
			sure[v.Tenant] += float64(least) / float64(v.Weight)
		}
	}
	if last < 0 || anew(last, a.at) {
		return own, 0
	}
	for _, x := range sure {
		heaviest = max(heaviest, x*left(last, a.at, window))
	}
	return own, heaviest
}

// termsOfKey returns all terms that may have been in force, in a time, for calls on the key of a use.
func (o *oracle) termsOfKey(u use, from, to time.Duration) (all []terms) {
	for i := range o.program.Rules {
		if o.program.alike(i, u.Rule) {
			all = append(all, o.terms(use{Rule: i, Key: u.Key}, from, to)...)
		}
	}
	return all
}
