package main

import (
	"time"

	"github.com/rategen/rategen/runtime"
)

// slack is how long what frees room may stay without effect: a process recalls
// denials for a second, and gives up on a settlement some time later.
const slack = int64((runtime.DefaultDenialMemory + 2*timeout) / time.Microsecond)

// longest is how long a call may take on a busy machine.
const longest = 10 * time.Second

// judgeBounds judges the calls on one key by what they prove, whatever happened
// meanwhile: calls that began and ended within a window were in it for certain, and
// only those that overlap it can have been in it.
//
//	over      more was admitted for certain in a window than it may hold
//	spurious  a call was denied though all calls that can have been charged
//	          leave room for it
//	wrong     an error that no caller should see, a denial in shadow mode or
//	          without a time to come back, an override without effect
func judgeBounds(v *verdict, k *kind, calls []*entry, c *circumstance) {
	width := k.rule.Window.Microseconds()
	for _, e := range calls {
		if e.wrong(k, c) {
			v.Wrong++
			v.note("%s: wrong: %+v", k.rule.Name, *e)
		}
		if e.Fate == admitted {
			if n := certain(calls, e, width, e.bySameStore); n > boundOf(k, calls)*(1+c.lost[e.Site]) {
				v.Over++
				v.note("%s: %d were admitted in a window that began with %+v", k.rule.Name, n, *e)
			}
			if n := certain(calls, e, width, e.bySameProcess); n > max(1, k.most/replicas) {
				v.Over++
				v.note("%s: a process alone admitted %d in a window that began with %+v", k.rule.Name, n, *e)
			}
		}
		if e.Fate == denied && !e.undecided() && !e.Blocked {
			// An event may count for a sixteenth of the window longer, and a queue
			// takes a while more to drain.
			from := e.Begin - width*17/16 - k.rule.Wait.Microseconds()
			room := k.room
			if k.changes {
				room = e.Limit + 1
			}
			if n := possible(calls, from, e, c); n+int64(e.Cost) < room {
				v.Spurious++
				v.note("%s: denied though %d of %d can be used: %+v", k.rule.Name, n, room-1, *e)
			}
		}
	}
}

// boundOf returns how much a window may hold. An override has a max of its own.
func boundOf(k *kind, calls []*entry) int64 {
	bound := k.most
	for _, e := range calls {
		if k.changes && e.Limit > bound {
			bound = e.Limit
		}
	}
	return bound
}

func (e *entry) wrong(k *kind, c *circumstance) bool {
	switch {
	case e.Fate == strange, e.End-e.Begin > longest.Microseconds():
		return true
	case e.Fate == denied && (k.rule.Mode == runtime.ModeShadow || e.Wait <= 0):
		return true
	case k.changes && !e.undecided() && e.Begin > c.changed+slack && c.changed > 0:
		return e.Limit != c.max
	}
	return false
}

// bySameStore reports whether Redis admitted both calls.
func (e *entry) bySameStore(o *entry) bool { return !e.undecided() && !o.undecided() }

// bySameProcess reports whether one process admitted both calls by itself.
func (e *entry) bySameProcess(o *entry) bool {
	local := uint8(runtime.SourceLocal)
	return e.Source == local && o.Source == local && e.Process == o.Process
}

// certain returns how much was admitted for certain in the window that begins with
// a call, of those that like picks.
func certain(calls []*entry, first *entry, width int64, like func(*entry) bool) (n int64) {
	for _, e := range calls {
		if e.Fate == admitted && e.Begin >= first.Begin && e.End < first.Begin+width && like(e) {
			n += int64(e.Kept)
		}
	}
	return n
}

// possible returns how much can have been charged, by the end of a call, from a time
// on: by every call that was not denied, and by processes before they were killed.
func possible(calls []*entry, from int64, refused *entry, c *circumstance) (n int64) {
	for _, e := range calls {
		if e.Fate == denied && !e.undecided() || e.latest(c) < from || e.Begin > refused.End {
			continue
		}
		if e.Settled != 0 && e.Settled+slack < refused.Begin {
			n += int64(e.Kept)
		} else {
			n += int64(e.Cost)
		}
	}
	for _, at := range c.killed {
		if c.latest(refused.Site, at) >= from {
			n += callers * maxCost
		}
	}
	return n
}
