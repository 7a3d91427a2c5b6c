package main

import (
	"fmt"
	"time"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/runtime"
)

// A verdict is what was found about calls.
type verdict struct {
	Calls, Exact, Bounds, Undecided int
	Over, Spurious, Wrong           int

	notes []string // the first faults
}

const maxNotes = 20

func (v *verdict) note(format string, args ...any) {
	if len(v.notes) < maxNotes {
		v.notes = append(v.notes, fmt.Sprintf(format, args...))
	}
}

func (v *verdict) add(o *verdict) {
	v.Calls += o.Calls
	v.Exact += o.Exact
	v.Bounds += o.Bounds
	v.Undecided += o.Undecided
	v.Over += o.Over
	v.Spurious += o.Spurious
	v.Wrong += o.Wrong
	for _, note := range o.notes {
		v.note("%s", note)
	}
}

func (v *verdict) faults() int { return v.Over + v.Spurious + v.Wrong }

// A circumstance is what the calls of a round have met that bears on them.
type circumstance struct {
	// lost says how often counts of each Redis may have been lost: with a server
	// that forgets, or with one that took over from it.
	lost [2]int64
	// until says when the fault of each Redis had ended. Until then a request may have
	// been held up whose caller has long given up, and was executed afterwards.
	until [2]int64
	// killed are the times, in microseconds, at which processes were killed. Calls
	// of theirs may be unknown.
	killed []int64
	// max is what the override says since changed.
	max     int64
	changed int64
}

// A place is one key of one limit of one Redis.
type place struct {
	site, kind uint8
	key        uint32
}

// judgeRound judges all calls of a round.
func judgeRound(entries []entry, c *circumstance) *verdict {
	v := new(verdict)
	places := map[place][]*entry{}
	for i := range entries {
		e := &entries[i]
		if e.What == over {
			continue
		}
		v.Calls++
		if e.undecided() {
			v.Undecided++
		}
		p := place{e.Site, e.Kind, e.Key}
		places[p] = append(places[p], e)
	}
	for p, calls := range places {
		k := &kinds[p.kind]
		switch {
		case p.kind == kindPermits:
			v.Bounds += len(calls)
			judgePermits(v, calls, c)
		case k.history != nil:
			judgeExactly(v, calls, c.lost[p.site] > 0)
		default:
			v.Bounds += len(calls)
			judgeBounds(v, k, calls, c)
		}
	}
	return v
}

// undecided reports whether the store gave no answer. The call may be charged.
func (e *entry) undecided() bool {
	source := runtime.Source(e.Source)
	return e.Fate == unavailable || e.Fate == strange || source == runtime.SourceFailure || source == runtime.SourceLocal
}

// latest returns when a call may have been charged at the latest.
func (e *entry) latest(c *circumstance) int64 {
	if !e.undecided() {
		return e.End
	}
	return c.latest(e.Site, e.End)
}

// latest returns until when a request may be executed that was sent before a time, and
// that nobody waits for any more.
func (c *circumstance) latest(site uint8, sent int64) int64 { return max(sent, c.until[site]) + slack }

// judgeExactly judges each decision on a key of which all is known: none is judged
// if counts were lost, or it is unknown whether a call was charged.
func judgeExactly(v *verdict, calls []*entry, lost bool) {
	rule := &kinds[calls[0].Kind].rule
	var records []judge.SharedRecord
	for _, e := range calls {
		if lost || e.undecided() {
			return
		}
		r := judge.SharedRecord{Start: e.Begin, End: e.End, At: e.At, Wait: time.Duration(e.Wait), Left: e.Left, Cost: e.Cost}
		if e.Recalled {
			r.Recalled = 1
		}
		records = append(records, r)
	}
	result := judge.SweepShared(kinds[calls[0].Kind].history, []*runtime.Rule{rule}, records)
	v.Exact += result.Decisions
	v.Over += result.Over
	v.Spurious += result.Spurious
	v.Wrong += result.Wrong
	if result.First != nil {
		v.note("%s on site %d: the first fault is %+v", rule.Name, calls[0].Site, *result.First)
	}
}
