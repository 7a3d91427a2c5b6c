package crossing

import (
	"context"
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A hold refuses all calls on a key for a time, or at 0 no longer.
type hold struct {
	Rule, Key int
	For       time.Duration
}

func holds(r *runtime.Rule) bool { return r.Hold }

// drawBlock has a rule block those that it refuses, or lets its keys be held.
func (s *scope) drawBlock(t *rapid.T, r *runtime.Rule, f features) {
	if r.Algorithm == runtime.Concurrency || r.Lease > 0 {
		return
	}
	if r.Wait == 0 && f.Blocks && rapid.Bool().Draw(t, "blocks") {
		r.Block = s.window / 4 * time.Duration(rapid.IntRange(1, 8).Draw(t, "block"))
	}
	r.Hold = f.Holds && rapid.Bool().Draw(t, "may be held")
}

// drawHold draws a hold, or the end of one.
func (s *scope) drawHold(t *rapid.T, p *program, f features) hold {
	rule := rapid.SampledFrom(slices.DeleteFunc(indexes(p.Rules), func(i int) bool { return !p.Rules[i].Hold })).Draw(t, "rule")
	return hold{Rule: rule, Key: drawKey(t, f), For: rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Just(s.window), rapid.Just(s.window/4)).Draw(t, "for")}
}

func (x hold) run(p *process) {
	h := &happening{rule: x.Rule, key: x.Key, from: p.now(), by: x.For}
	p.work.Add(1)
	u := use{Rule: x.Rule, Key: x.Key, Cost: 1}
	limit := p.limits([]use{u})[0]
	if x.For == 0 {
		h.err = p.limiter.Release(context.Background(), limit)
		p.note("in p%d: release %v -> %s", p.number, u, documents.Words(h.err))
	} else {
		h.err = p.limiter.Hold(context.Background(), limit, x.For)
		p.note("in p%d: hold rule%d/%d %v -> %s", p.number, x.Rule, x.Key, x.For, documents.Words(h.err))
	}
	h.to = p.now()
	p.history.holds = append(p.history.holds, h)
}

// heldUse reports whether a key of a call may have been held, or released, in a time.
func (o *oracle) heldUse(a *asked, from, to time.Duration) bool {
	return slices.ContainsFunc(o.holds, func(h *happening) bool {
		return h.from <= to && h.to+h.by >= from && o.meet(a, &asked{uses: []use{{Rule: h.rule, Key: h.key}}})
	})
}

// blockedBefore reports whether a call may be refused by a block or a hold of before.
func (o *oracle) blockedBefore(a *asked) bool {
	since := a.start - o.lateness() - o.behind(a.at, false) // by its clock a store blocks
	if o.heldUse(a, since, a.at) {
		return true
	}
	for _, c := range o.asked {
		if c == a || c.start > a.at || !o.meet(a, c) || !errors.Is(c.err, runtime.ErrLimited) && !c.left() && !o.lateCharge(c, a) {
			continue
		}
		at := c.at
		if c.left() || o.lateCharge(c, a) { // it may be refused all the same, when it comes to the store
			at += o.answers()
		}
		for _, u := range c.uses {
			others := u.Weight > 0 && !slices.ContainsFunc(a.uses, func(v use) bool { return v.Key == u.Key && v.Tenant == u.Tenant })
			if b := o.program.Rules[u.Rule].Block; b > 0 && !others && at+b >= since {
				return true
			}
		}
	}
	return false
}

// blocks holds calls against the blocks and holds of their keys: nobody is admitted until these
// are over, whatever has room meanwhile.
func (o *oracle) blocks() {
	if len(o.jumps) > 0 {
		return
	}
	for _, a := range o.asked {
		if len(a.uses) != 1 || o.program.Rules[a.uses[0].Rule].Block == 0 || a.d.Source != rule.SourceStore || !a.d.Blocked ||
			a.before == nil || a.before.err != nil || a.before.d.Blocked || !a.alone || a.start != a.end {
			continue
		}
		if a.d.RetryAfter < o.program.Rules[a.uses[0].Rule].Block {
			o.wrong("a block lasts as long as its rule says", "#%d is told %v", a.number, a.d.RetryAfter)
		}
		o.nobody("nobody is admitted who is blocked", a.uses[0], a.at, a.at, o.program.Rules[a.uses[0].Rule].Block)
	}
	for _, h := range o.holds {
		if h.err == nil && h.by > 0 {
			o.nobody("nobody is admitted to what is held", use{Rule: h.rule, Key: h.key}, h.from, h.to, h.by)
		}
	}
}

// nobody wants no call to be admitted to a key, or to the share of it that was blocked, that came after a block had begun in a time, and
// was decided before it was over, unless the key is forgotten or released.
func (o *oracle) nobody(promise string, key use, from, to, lasts time.Duration) {
	for _, b := range o.asked {
		if !b.admitted() || b.start <= to || b.at >= from+lasts {
			continue
		}
		for i, u := range b.uses {
			if u.Key != key.Key || key.Weight > 0 && u.Tenant != key.Tenant || !o.program.alike(u.Rule, key.Rule) || !o.asksStore(b, i) {
				continue
			}
			r := o.program.Rules[u.Rule]
			released := slices.ContainsFunc(o.holds, func(h *happening) bool {
				return h.by == 0 && h.from <= b.at && h.to >= from && h.key == u.Key && o.program.alike(h.rule, u.Rule)
			})
			if !released && !o.forgotten(u, from, b.at) && !o.elsewhere(r, u, from, b.at) {
				o.wrong(promise, "#%d at %v: %v (%s), from %v on for %v", b.number, b.at, u, document.Fields(r), from, lasts)
			}
		}
	}
}

// asksStore reports whether a use of a call that went on was for the store to decide: also one
// that costs nothing, of which nobody is told when there was nothing to ask.
func (o *oracle) asksStore(a *asked, i int) bool {
	if t := a.reported[i]; t.yes {
		return t.source == rule.SourceStore && t.verdict == observe.VerdictAdmitted && t.mode.Refuses()
	}
	enforced := !slices.ContainsFunc(o.terms(a.uses[i], a.start, a.at), func(t terms) bool { return t.off || !t.mode.Refuses() })
	return a.uses[i].Cost == 0 && enforced && !a.call.Exempt && !a.more && !o.faulted(0, a.end)
}

// refusals wants no call to go on, whatever it costs, whose key an override gives a max of 0 all
// the time: that is what a block is.
func (o *oracle) refusals() {
	for _, a := range o.asked {
		for i, u := range a.uses {
			open := slices.ContainsFunc(o.terms(u, a.start, a.end), func(t terms) bool { return t.off || t.max > 0 || !t.mode.Refuses() })
			if !open && a.admitted() && !a.call.Exempt && !a.more && !(u.Key == nobody && o.program.Rules[u.Rule].Invalid == rule.InvalidAdmit) {
				o.wrong("nobody is admitted who is blocked by an override", "#%d: %v, %v", a.number, u, a.reported[i].verdict)
			}
		}
	}
}

// exempts wants calls without limits to go on, and nobody to be told of them.
func (o *oracle) exempts() {
	for _, a := range o.asked {
		told := slices.ContainsFunc(a.reported, func(t reported) bool { return t.yes })
		if a.call.Exempt && !a.more && (a.err != nil || told || a.d.Source != rule.SourceNone) {
			o.wrong("an exempt call is not counted", "#%d: %+v, %v", a.number, a.d, a.err)
		}
	}
}
