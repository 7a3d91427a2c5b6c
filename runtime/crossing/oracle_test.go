package crossing

import (
	"fmt"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// An oracle holds a history against what the documentation promises, and collects what
// contradicts it.
type oracle struct {
	*history
	found []string
}

// judge returns all contradictions of a history.
func judge(h *history) []string {
	o := &oracle{history: h, found: h.odd}
	for name, charges := range h.accounts() {
		r := h.program.Rules[charges[0].uses[charges[0].use].Rule]
		switch {
		case r.Algorithm == runtime.Concurrency:
			o.permits(name, charges)
		case r.Algorithm == runtime.TokenBucket, r.Algorithm == runtime.LeakyBucket:
			o.buckets(name, charges)
			if r.Algorithm == runtime.LeakyBucket && r.Wait > 0 {
				o.turns(name, charges)
			}
		case h.program.roams(r): // its ledger has it
		default:
			o.windows(name, charges)
		}
	}
	for _, a := range h.asked {
		o.errors(a)
		o.settlement(a)
		o.looks(a)
		o.retry(a)
		o.period(a)
		o.needless(a)
		o.idle(a)
		o.processTurns(a)
	}
	o.caps()
	o.blocks()
	o.refusals()
	o.exempts()
	o.nobodies()
	o.thresholds()
	o.surgesTold()
	o.past()
	o.findings()
	o.ledgers()
	o.meters()
	o.judgeCrowds()
	o.idlePermits()
	for _, l := range h.left {
		o.wrong("nothing is held at the end", "%s", l)
	}
	return o.found
}

// wrong notes a contradiction to a promise.
func (o *oracle) wrong(promise, format string, args ...any) {
	o.found = append(o.found, promise+": "+fmt.Sprintf(format, args...))
}

// terms are the numbers of a rule as they were in force for a key.
type terms struct {
	off         bool
	max, window int64 // of the window in microseconds
	mode        runtime.Mode
}

// inForce returns the overrides that may have been in force at some moment of a time.
func (h *history) inForce(from, to time.Duration) (all []*happening) {
	for i, c := range h.changes {
		if c.from <= to && (i+1 == len(h.changes) || h.changes[i+1].to >= from) {
			all = append(all, c)
		}
	}
	return all
}

// isOff reports whether all limits may have been switched off when a call came.
func (h *history) isOff(a *asked) bool {
	return slices.ContainsFunc(h.inForce(a.start, a.at), func(c *happening) bool { return c.off })
}

// terms returns all terms that may have been in force for a use at some moment of a time.
func (h *history) terms(u use, from, to time.Duration) (all []terms) {
	for _, c := range h.inForce(from, to) {
		all = append(all, h.program.under(u, c))
	}
	return all
}

// under returns the terms of a use under overrides.
func (p *program) under(u use, c *happening) terms {
	r := p.Rules[u.Rule]
	t := terms{off: c.off, max: r.Max, window: r.Window.Microseconds(), mode: r.Mode}
	if u.Max > 0 {
		t.max = u.Max
	}
	declared := c.rules[u.Rule]
	for _, o := range []rule.KeyOverride{{Enabled: declared.Enabled, Max: declared.Max, Window: declared.Window, Mode: declared.Mode}, keyOverride(declared.Keys, u.Key)} {
		if o.Enabled != nil {
			t.off = c.off || !*o.Enabled
		}
		if o.Max != nil {
			t.max = *o.Max
		}
		if o.Window != nil {
			t.window = o.Window.Microseconds()
		}
		if o.Mode != nil {
			t.mode = *o.Mode
		}
	}
	return t
}

// loosest returns the largest max, burst and rate in events a microsecond, and the
// shortest window, that were in force for any of some charges, or between them.
func (o *oracle) loosest(charges []charge, from, to time.Duration) (l struct {
	max, burst int64
	rate       float64
	window     time.Duration
}) {
	l.window = endless
	for _, c := range charges {
		u := c.uses[c.use]
		all := o.terms(u, from, to)
		if t := c.reported[c.use]; t.yes {
			for i := range all {
				if t.source == rule.SourceLocal || o.adapts(c.asked) {
					all[i].max = t.max // a share, or what the load has made of it
				}
			}
			all = append(all, terms{max: t.max, window: t.window.Microseconds()})
		}
		for _, t := range all {
			l.max = max(l.max, t.max)
			l.burst = max(l.burst, capacity(o.program.Rules[u.Rule], t.max))
			l.rate = max(l.rate, float64(t.max)/float64(t.window))
			l.window = min(l.window, time.Duration(t.window)*time.Microsecond)
		}
		for i := range o.program.Rules {
			if i == u.Rule || !o.program.alike(i, u.Rule) {
				continue
			}
			for _, t := range o.terms(use{Rule: i, Key: u.Key}, from, to) { // which forgets what has left it
				l.window = min(l.window, time.Duration(t.window)*time.Microsecond)
			}
		}
	}
	return l
}

// capacity returns how much a rule admits at once.
func capacity(r *runtime.Rule, most int64) int64 {
	if !drains(r) || most == 0 {
		return most
	}
	if r.Burst > 0 {
		return r.Burst
	}
	if r.Algorithm == runtime.LeakyBucket && r.Wait > 0 { // a queue, whose line has no bound
		return 1 << 40
	}
	return most
}
