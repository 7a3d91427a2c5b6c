package crossing

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// needless holds a refusal against what can have been in its way at most, and how long it is told to last
// against when that must have left. A limit without room explains it, or a block or hold of the key; nothing else
// does.
//
// What is not known is bounded by the worst that it may be, see limits and used, and so judged as far as that
// goes. Not judged at all are:
//   - what a process remembers of the store after a fault: it may be of counts that the fault has lost;
//   - leases after a fault: units that a process has asked for and never got count, and nobody is told how many;
//   - a rule whose periods begin by the callers' zones: its ledger has it;
//   - how long a share of a divided limit is told to wait: what it may use of the headroom decays meanwhile;
//   - when permits and reservations are told to come back: that is a guess, see lapseTold.
func (o *oracle) needless(a *asked) {
	if !errors.Is(a.err, runtime.ErrLimited) || a.d.Blocked && o.blockedBefore(a) {
		return
	}
	if a.d.Source != rule.SourceStore && a.d.Source != rule.SourceRecalled && a.d.Source != rule.SourceLocal {
		return
	}
	i := slices.IndexFunc(a.uses, func(u use) bool { return o.program.Rules[u.Rule].Name == a.d.Rule })
	if i < 0 {
		o.wrong("a refusal names a limit of its call", "#%d: %q", a.number, a.d.Rule)
		return
	}
	u, r := a.uses[i], o.program.Rules[a.uses[i].Rule]
	if o.obscured(a, r) || o.program.roams(r) {
		return
	}
	l, known := o.limits(a, i)
	if !known || u.Cost > l.capacity {
		return
	}
	if used, kept := o.used(a, u, r, l, 0), o.kept(a, u, r, l); l.fits(u, used, kept) {
		o.wrong("nobody is refused who has room", "#%d at %v: %v (%s) has %.6g of %d used, %.6g kept for others", a.number, a.at, u, document.Fields(r), used, l.capacity, kept)
	}
	if a.d.Blocked || a.d.Source == rule.SourceRecalled || u.Weight > 0 || r.Algorithm == runtime.Concurrency || r.Reserve > 0 || a.d.RetryAfter == runtime.Never {
		return
	}
	sooner := a.d.RetryAfter - (a.at - a.from(o.history)) - o.lateness() - 2*time.Microsecond // it was decided at some moment of these
	if sooner <= 0 {
		return
	}
	if used := o.used(a, u, r, l, sooner); l.fits(u, used, 0) {
		o.wrong("RetryAfter is no longer than what is used needs", "#%d at %v is told %v: %v before, %v (%s) has %.6g of %d used at most", a.number, a.at, a.d.RetryAfter, a.d.RetryAfter-sooner, u, document.Fields(r), used, l.capacity)
	}
}

// obscured reports whether a fault has left it open what a refusal is of.
func (o *oracle) obscured(a *asked, r *runtime.Rule) bool {
	return (a.d.Source == rule.SourceRecalled || r.Lease > 0) && o.faulted(0, a.end)
}

// faulted reports whether there was a fault in a time that leaves it open what was charged.
func (o *oracle) faulted(from, to time.Duration) bool {
	return slices.ContainsFunc(during(o.faults, from, to), func(f *happening) bool { return f.fault != slow && f.fault != flushed })
}

// drains reports whether a rule has a bucket.
func drains(r *runtime.Rule) bool {
	return r.Algorithm == runtime.TokenBucket || r.Algorithm == runtime.LeakyBucket
}

// A limited call has what is least for it of the numbers that may have been in force.
type limited struct {
	capacity int64
	max      int64
	window   time.Duration // for which what is charged may count
	rate     float64       // in events a microsecond, by which a bucket drains
	wait     time.Duration // in a queue
	local    bool          // its process has decided alone
	back     time.Duration // what the clock by which it counts has gone less than the oracle's
}

// fits reports whether a use has room.
func (l limited) fits(u use, used, kept float64) bool {
	if l.wait >= 0 && used/l.rate > float64(l.wait.Microseconds()) {
		return false
	}
	return used+float64(u.Cost) <= float64(l.capacity)-kept
}

// limits returns the numbers of a use of a call, and whether any were in force: the lowest max, and
// of all that may have counted on the key by then the longest window and the slowest rate.
func (o *oracle) limits(a *asked, i int) (l limited, known bool) {
	u, r, told := a.uses[i], o.program.Rules[a.uses[i].Rule], a.reported[i]
	l.local = a.d.Source == rule.SourceLocal
	l.wait, l.rate = -1, math.Inf(1)
	for _, t := range o.terms(u, a.from(o.history), a.at) {
		most := t.max
		if told.yes && (l.local || o.adapts(a)) {
			most = told.max // a share, or what the load has made of it
		} else if l.local || o.adapts(a) {
			return l, false
		}
		n := leased(r, capacity(r, most), most, t.window)
		if n > 1<<30 { // a line without a burst of its own has those whose turn comes in time
			n = most + int64(math.Ceil(float64(most)*float64(r.Wait.Microseconds())/float64(t.window)))
		}
		if !known || n < l.capacity {
			l.capacity, l.max, known = n, most, true
		}
	}
	if l.local && told.limit < l.capacity {
		l.capacity = told.limit // a share of a burst
	}
	l.back = o.behind(a.end, l.local && !o.still) // in memory a process that decides alone has the store's clock
	o.slowest(&l, u, r, a.at)
	if r.Wait > 0 && r.Algorithm == runtime.LeakyBucket {
		l.wait = max(0, o.mayWait(a, r)-(a.at-a.start))
	}
	return l, known
}

// slowest finds the longest window and the slowest rate by which a key may have counted up to a time.
func (o *oracle) slowest(l *limited, u use, r *runtime.Rule, at time.Duration) {
	least := 1.0
	if len(o.scales) > 0 {
		least = min(1, slices.Min(o.scales))
	}
	for j, v := range o.program.Rules {
		if !o.program.alike(j, u.Rule) {
			continue
		}
		all := o.terms(use{Rule: j, Key: u.Key}, 0, at)
		for _, c := range o.asked {
			for _, w := range c.uses {
				if w.Rule == j && w.Key == u.Key && w.Max > 0 && c.start <= at {
					all = append(all, o.terms(w, 0, at)...)
				}
			}
		}
		for _, t := range all {
			l.window = max(l.window, time.Duration(t.window)*time.Microsecond)
			most := float64(t.max)
			if v.Adaptive != nil {
				most = max(1, math.Floor(least*most))
			}
			if l.local {
				most = min(most, float64(l.max))
			}
			if most > 0 && t.window > 0 {
				l.rate = min(l.rate, most/float64(t.window))
			}
		}
	}
}

// leased returns how much of the capacity of a rule a bucket with leases has at least: less by what
// drains in a lease.
func leased(r *runtime.Rule, capacity, most, window int64) int64 {
	if !drains(r) || r.Lease == 0 {
		return capacity
	}
	drained := int64(math.Ceil(float64(most) * float64(r.Lease.Microseconds()) / float64(window)))
	return max(min(1, capacity), capacity-drained-1)
}

// behind returns what the clock of the store has gone less than the oracle's by a time: its steps back;
// or the clock of a process, which takes no steps.
func (o *oracle) behind(by time.Duration, local bool) (back time.Duration) {
	for _, j := range during(o.jumps, 0, by) {
		if local {
			back += max(0, j.by)
		} else {
			back -= min(0, j.by)
		}
	}
	return back
}

// setBack reports whether the store's clock was set back by a time.
func (o *oracle) setBack(by time.Duration) bool { return o.behind(by, false) > 0 }

// mayWait returns for how long a call may wait for a rule in all.
func (o *oracle) mayWait(a *asked, r *runtime.Rule) time.Duration {
	if r.Algorithm == runtime.LeakyBucket && (a.each || a.more && a.call.Deadline) {
		return 0 // of a stream the time of the whole call has gone on
	}
	if a.call.Deadline && a.call.Cancel > 0 {
		return min(r.Wait, a.call.Cancel)
	}
	return r.Wait
}
