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
// a call was decided. What was used decays by 1/e in a window, and is nothing after one without a charge.
func (o *oracle) standing(a *asked, u use, window time.Duration) (own, heaviest float64) {
	left := func(from, to time.Duration) float64 { return math.Exp(-float64(max(0, to-from)) / float64(window)) }
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
				own += float64(max(v.Cost, c.settledAt(i))) / float64(v.Weight) * left(at, a.from(o.history))
			}
			least := v.Cost
			if s := c.settled; s.tried && s.cost[i] >= 0 {
				least = min(least, s.cost[i])
			}
			if !c.charged(i) || c.left() || c.at >= a.start || o.forgotten(u, c.start, a.at) || c.reported[i].source != rule.SourceStore {
				continue
			}
			if since := c.from(o.history); since-last >= window-time.Millisecond {
				clear(sure)
			} else {
				for tenant := range sure {
					sure[tenant] *= left(last, c.at)
				}
			}
			last = c.at
			sure[v.Tenant] += float64(least) / float64(v.Weight)
		}
	}
	if last < 0 || a.at-last >= window-time.Millisecond {
		return own, 0
	}
	for _, x := range sure {
		heaviest = max(heaviest, x*left(last, a.at))
	}
	return own, heaviest
}
