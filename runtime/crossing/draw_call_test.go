package crossing

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// drawGap draws a time: none, a short one, or one about a turn, a window or its edge.
func (s *scope) drawGap(t *rapid.T, p *program) time.Duration {
	most, window := p.Rules[0].Max, p.Rules[0].Window
	if window == 0 {
		window = s.window // none of a period comes again in a program
	}
	if p.Days && rapid.Bool().Draw(t, "days") {
		return time.Hour * time.Duration(rapid.SampledFrom([]int{1, 5, 12, 23, 24, 50, 7 * 24, 31 * 24}).Draw(t, "hours"))
	}
	return rapid.OneOf(
		rapid.Just(time.Duration(0)),
		rapid.Just(time.Duration(0)),
		rapid.Map(rapid.IntRange(1, 40), func(n int) time.Duration { return time.Duration(n) * s.window / 40 }),
		rapid.SampledFrom([]time.Duration{(window / time.Duration(most)).Truncate(time.Microsecond), window, window - time.Microsecond, 2 * window, time.Microsecond}),
	).Draw(t, "time")
}

func drawKey(t *rapid.T, f features) int {
	if rarely(t, f.Nobodies, "nobody") {
		return nobody
	}
	if !f.Keys {
		return 0
	}
	return rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "key")
}

// rarely draws whether something is done that a program may hold.
func rarely(t *rapid.T, may bool, label string) bool {
	return may && rapid.IntRange(0, 3).Draw(t, label) == 3
}

// drawCall draws a call on some of the rules.
func (s *scope) drawCall(t *rapid.T, p *program, f features) call {
	c := call{Each: rarely(t, f.Each, "each") || s.real && f.Each && rapid.Bool().Draw(t, "each of some")}
	if c.Each && (s.real || rapid.Bool().Draw(t, "others")) {
		c.Beside = 130 // more than one request has
	}
	key, tenant := drawKey(t, f), 0
	if f.Tenants {
		tenant = rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(t, "tenant")
	}
	c.Uses = []use{s.drawUse(t, p, f, 0, key, tenant)}
	if len(p.Rules) > 1 {
		c.Uses = nil
		order := rapid.Permutation(indexes(p.Rules)).Draw(t, "rules")
		for _, i := range order[:rapid.IntRange(1, len(order)).Draw(t, "limits")] {
			one := slices.ContainsFunc(c.Uses, func(u use) bool { return p.alike(u.Rule, i) })
			if !beside(p, i) && !one {
				c.Uses = append(c.Uses, s.drawUse(t, p, f, i, key, tenant))
			}
			for j := range p.Rules { // whose keys are the same
				if i == 0 && !c.Each && beside(p, j) && rapid.Bool().Draw(t, "beside") {
					c.Uses = append(c.Uses, s.drawUse(t, p, f, j, key, tenant))
				}
			}
		}
		if len(c.Uses) == 0 {
			c.Uses = []use{s.drawUse(t, p, f, 0, key, tenant)}
		}
	}
	if rarely(t, f.Nexts, "next") {
		c.Next = rapid.IntRange(1, 6).Draw(t, "more")
	}
	if c.Each && rapid.Bool().Draw(t, "one twice") {
		c.Uses = append(c.Uses, s.drawUse(t, p, f, c.Uses[0].Rule, c.Uses[0].Key, tenant))
	}
	c.Exempt = rarely(t, f.Exempts, "exempt")
	if rarely(t, f.Leaving, "leaves") {
		c.Cancel = max(time.Microsecond, s.drawGap(t, p))
		c.Deadline = rapid.Bool().Draw(t, "deadline")
	}
	shared := slices.ContainsFunc(c.Uses, func(u use) bool { return beside(p, u.Rule) })
	if !c.Each && !shared && key != nobody && f.Meters && rapid.IntRange(0, 2).Draw(t, "metered") == 2 {
		c.Meter = s.drawMeter(t, p, c.Uses)
	}
	c.Again = !c.Each && (rarely(t, f.Coming, "again") || f.Coming && s.far && rapid.Bool().Draw(t, "again from far"))
	c.Hasty = c.Again && !s.real && rapid.Bool().Draw(t, "at once")
	c.Early = c.Again && !s.far && rapid.Bool().Draw(t, "early")
	if f.Settling && (!f.Books || rapid.Bool().Draw(t, "settled")) {
		c.Settle = settling(rapid.IntRange(0, int(settlings)-1).Draw(t, "settle"))
	}
	if c.Settle != not || holdsPermits(p, c.Uses) {
		c.Holds = s.drawGap(t, p)
		c.Later = rarely(t, f.Later, "later")
		if rarely(t, f.Mistakes, "mistaken") {
			c.Wrong = wrong(rapid.IntRange(0, int(wrongs)-1).Draw(t, "mistake"))
		}
	}
	return c
}

func (s *scope) drawUse(t *rapid.T, p *program, f features, declared, key, tenant int) use {
	u := use{Rule: declared, Key: key, Cost: 1}
	if f.Costs {
		u.Cost = rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 5, 0}).Draw(t, "cost")
		if dear(p.Rules[declared]) {
			u.Cost *= 20
		}
	}
	if p.Rules[declared].Headroom != 0 {
		u.Tenant, u.Weight = tenant, int64(1+tenant%2)
	}
	if f.Books && rapid.Bool().Draw(t, "book's max") || rarely(t, f.OwnMax, "own max") {
		u.Max = rapid.Int64Range(1, 10).Draw(t, "its max")
	}
	if r := p.Rules[declared]; p.roams(r) && rapid.Bool().Draw(t, "own period") {
		own := *r
		s.drawPlace(t, &own)
		u.Zone, u.Anchor = cmp.Or(own.Zone, "UTC"), own.Anchor
		if r.Period != rule.Day { // of which there is no anchor
			u.Anchor = max(u.Anchor, 1)
		}
	}
	return u
}

// unused is a key that no calls have of which anything is to be seen.
const unused = 8

// drawForget draws that servers forget the scripts, perhaps while a call is under way that has all of a
// limit, and then gives it back and comes again at once.
func (s *scope) drawForget(t *rapid.T, p *program) (f forget) {
	i := rapid.IntRange(0, len(p.Rules)-1).Draw(t, "amid a call of")
	if r := p.Rules[i]; p.Processes > 1 && !beside(p, i) && r.Headroom == 0 && r.Max <= 40 && rapid.IntRange(0, 3).Draw(t, "amid a call") > 0 {
		f.Amid = &call{Uses: []use{{Rule: i, Cost: r.Max}}, Next: rapid.IntRange(1, 3).Draw(t, "more"), Holds: 200 * time.Millisecond, Settle: zero, Later: true}
	}
	return f
}

// beside reports whether a rule in shadow mode has the same keys as the first one.
func beside(p *program, rule int) bool {
	return rule > 0 && p.shares(rule) && !p.Rules[rule].Mode.Refuses()
}

// shares reports whether a rule has the keys of others.
func (p *program) shares(rule int) bool { return p.Rules[rule].Prefix == "shared:" }

// alike reports whether two rules have the same keys.
func (p *program) alike(i, j int) bool {
	return i == j || p.shares(i) && p.shares(j)
}

func holdsPermits(p *program, uses []use) bool {
	for _, u := range uses {
		if p.Rules[u.Rule].Algorithm == runtime.Concurrency {
			return true
		}
	}
	return false
}

// drawChange draws overrides of some rules.
func (s *scope) drawChange(t *rapid.T, p *program, f features) change {
	c := change{Rules: map[int]rule.Override{}, Off: rapid.IntRange(0, 7).Draw(t, "off") == 7, Switch: rapid.Bool().Draw(t, "switch")}
	for i := range p.Rules {
		if rapid.Bool().Draw(t, "rule's") {
			drawn := s.drawOverride(t, p.Rules[i])
			o := rule.Override{Enabled: drawn.Enabled, Max: drawn.Max, Window: drawn.Window, Mode: drawn.Mode}
			if rapid.IntRange(0, 2).Draw(t, "key's") == 0 {
				o.Keys = map[string]rule.KeyOverride{use{Key: drawKey(t, f)}.name(): s.drawOverride(t, p.Rules[i])}
			}
			c.Rules[i] = o
		}
	}
	return c
}

func (s *scope) drawOverride(t *rapid.T, r *runtime.Rule) (o rule.KeyOverride) {
	kinds := []string{"max", "max", "mode", "off", "window", "all"}
	if r.Period != rule.NoPeriod {
		kinds = kinds[:4]
	}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "override"); kind {
	case "max", "all":
		o.Max = new(rapid.Int64Range(0, 12).Draw(t, "max"))
		if kind == "max" {
			break
		}
		fallthrough
	case "window":
		o.Window = new(r.Window * time.Duration(rapid.SampledFrom([]int{1, 3, 4, 8}).Draw(t, "window")) / 2)
	case "mode":
		if r.Mode == runtime.ModeEnforce {
			o.Mode = new(rapid.SampledFrom([]runtime.Mode{runtime.ModeShadow, runtime.ModeSoft}).Draw(t, "mode"))
		}
	case "off":
		o.Enabled = new(false)
	default:
		panic(fmt.Sprint("no override ", kind))
	}
	return o
}

func indexes[T any](all []T) (out []int) {
	for i := range all {
		out = append(out, i)
	}
	return out
}
