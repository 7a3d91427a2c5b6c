package ratepage

import (
	"github.com/rategen/rategen/internal/ratetally"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// The columns of a rule's counts.
const (
	admitted  = iota
	refused   // by the store, a remembered refusal, or this process
	shadow    // had no room, but the limit only counts
	undecided // by the failure policy, since nothing else could
	columns
)

// column returns where a decision is counted, and false for a limit that had room
// in a call which another limit refused.
func column(verdict observe.Verdict, source rule.Source) (int, bool) {
	if verdict == observe.VerdictUnavailable || source == rule.SourceFailure {
		return undecided, true
	}
	if verdict == observe.VerdictAdmitted {
		return admitted, true
	}
	if verdict == observe.VerdictRefused {
		return refused, true
	}
	if verdict == observe.VerdictShadowRefused {
		return shadow, true
	}
	return 0, false
}

// counts are those of all rules, since the program started. One goroutine at a time
// takes samples.
type counts struct {
	tally *ratetally.Tally
	last  map[ratetally.Rule][columns]uint64 // of the last sample
}

func newCounts() counts { return counts{ratetally.New(), make(map[ratetally.Rule][columns]uint64)} }

// calls returns how many decisions there were of each rule, at the last sample.
func (c *counts) calls() map[string]int64 {
	calls := make(map[string]int64, len(c.last))
	for declared, n := range c.last {
		for _, made := range n {
			calls[declared.Label()] += int64(made)
		}
	}
	return calls
}

// sample returns the calls of each rule since the last sample, and those of all
// since the program started.
func (c *counts) sample() (rows []row, totals [columns]uint64) {
	for _, declared := range c.tally.Rules() {
		var n [columns]uint64
		declared.Decisions(func(verdict observe.Verdict, source rule.Source, made uint64) {
			if column, ok := column(verdict, source); ok {
				n[column] += made
			}
		})
		r := row{Name: declared.Label(), Waiting: declared.Waiting(), HeldMS: milliseconds(declared.Held())}
		last := c.last[declared]
		for i := range n {
			r.N[i] = n[i] - last[i]
			totals[i] += n[i]
		}
		c.last[declared] = n
		if n != last || r.Waiting > 0 || r.HeldMS > 0 {
			rows = append(rows, r)
		}
	}
	return rows, totals
}
