package model

import (
	"go/ast"
	"go/types"
	"math"
	"strconv"
	"time"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
)

// rareBlock is the share of refusals from which on a block is worth a word: with fewer it
// outlasts what a caller waits anyway.
const rareBlock = 1. / 20

// warnBlock warns of a block that is far shorter than what a refused caller waits anyway.
func (b *Builder) warnBlock(r *Rule) {
	if r.Block() == 0 || r.Dynamic {
		return
	}
	wait, why := r.Window(), "a refused call has room only in the next "+r.Per()
	if !r.Plain().Is(algorithm.Resets) {
		wait /= time.Duration(r.most())
		why = "there is room for another call every " + spec.DurationText(wait.Round(time.Microsecond))
	}
	if float64(r.Block()) < rareBlock*float64(wait) {
		b.Report.Warn(diag.ShortBlock, r.Place("block"), "block: %s, so a block of %s keeps hardly anybody out for longer: write a longer one, or remove it",
			why, spec.DurationText(r.Block()))
	}
}

// warnLease warns of a lease whose limit is too small for a process to charge anything ahead.
func (b *Builder) warnLease(w *Wrapper, r *Rule) {
	if r.Lease() == 0 || r.Dynamic || len(r.Adaptive()) > 0 {
		return
	}
	cost := int64(math.MaxInt64) // of the cheapest call
	for _, m := range w.Methods {
		for _, l := range m.Limits {
			if l.Rule == r {
				cost = min(cost, constantCost(l, 1))
			}
		}
	}
	if cost == math.MaxInt64 {
		return // no method has it
	}
	// The first call is charged before, and a lease lowers the burst of a bucket.
	option, most, least := "max", r.burst(), (1+spec.LeaseShare*spec.LeaseCalls)*cost+r.drains()
	if r.Plain().Is(algorithm.Drains) {
		option = "burst"
	}
	if most < least {
		b.Report.Warn(diag.IdleLease, r.Place("lease"), "lease: a process charges ahead an eighth of what is left at most, and enough for %d calls at least, so with a %s of %d it never does: raise that to %d or more, or remove lease",
			spec.LeaseCalls, option, most, least)
	}
}

// warnLapse warns of permits and reservations that lapse before a slow renewal comes.
func (b *Builder) warnLapse(r *Rule) {
	option, what, lasts := "window", "a permit", r.Window()
	if !r.Plain().Is(algorithm.Lends) {
		option, what, lasts = "reserve", "a reservation", r.Reserve()
	}
	if lasts == 0 || lasts-lasts/spec.Renewals > spec.Timeout {
		return
	}
	b.Report.Warn(diag.ShortLapse, r.Place(option), "%s: %s lapses after %s, and is renewed when a third of that is over, which may take %s, so calls would lose it while they run: write some seconds",
		option, what, spec.DurationText(lasts), spec.Timeout)
}

// warnEarly warns of permits that are back before what their calls return is used, unless the
// limit says what a call costs.
func (b *Builder) warnEarly(f *File, w *Wrapper) {
	warned := map[*Rule]bool{}
	for _, m := range w.Methods {
		t := m.returnedStream()
		if t == nil || m.Stream != nil && m.Stream.Kind == Sequence {
			continue
		}
		for _, l := range m.Limits {
			if r := l.Rule; l.IsPermit() && !r.Has("cost") && !warned[r] {
				warned[r] = true
				b.Report.Warn(diag.EarlyPermit, r.Place("algorithm"), "algorithm: %s returns a %s, and the permit is back before that is used: limit a method that uses it to its end, keep the permit by Meter.Reader of package runtime, or write cost=1 if the permit is for the call alone",
					m.Name, types.TypeString(t, f.qualify)).Mark(r.Algorithm())
			}
		}
	}
}

// warnUnasked warns of a limit in soft mode on a method of a struct that has no use for its
// context, so that nothing finds out what the limit has found.
func (b *Builder) warnUnasked(w *Wrapper) {
	for _, m := range w.Methods {
		fn := w.Decl.Func(m.Name)
		if fn == nil || fn.Body == nil {
			continue
		}
		for _, l := range m.Limits {
			if l.Rule.IsSoft() && !m.usesContext(fn) {
				b.Report.Warn(diag.SoftUnasked, l.Rule.Place("mode"), "mode: %s has no use for its context, so nothing finds out that a call is over the limit: call runtime.Exceeded with it, or write mode=shadow if the limit is to count only",
					m.Name).Mark("soft")
			}
		}
	}
}

// usesContext reports whether a method's code names the parameter with its context.
func (m *Method) usesContext(fn *ast.FuncDecl) (found bool) {
	name := m.Context().Source
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name && name != "_"
		return !found
	})
	return found
}

// warnUneven warns of limits that use one policy, and so are to count together, and whose keys
// never are the same.
func (b *Builder) warnUneven(files []*File) {
	used := map[string]*Rule{}
	for _, r := range b.sortedRules(files) {
		if r.Policy() == nil {
			continue
		}
		before := first(used, r.Prefix, r)
		if here, there := len(r.Key()), len(before.Key()); here != there {
			other := b.Report.Position(before.Pos)
			b.Report.Warn(diag.UnevenKeys, r.Place("key"), "key: of %s here and of %s at %s:%d, so these limits never count together, though both use the policy %s: write keys of as many parts, or prefix= and name= if one is to count apart",
				partCount(here), partCount(there), other.Filename, other.Line, r.Use())
		}
	}
}

// partCount writes of how many parts a key is.
func partCount(n int) string {
	switch n {
	case 0:
		return "no part"
	case 1:
		return "one part"
	}
	return strconv.Itoa(n) + " parts"
}
