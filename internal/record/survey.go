package record

import (
	"slices"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime"
	rules "github.com/rategen/rategen/runtime/rule"
)

// A Survey is what there is in records.
type Survey struct {
	Calls, Settlements int64
	// From and To are the first and the last time, in microseconds since 1970.
	From, To int64
	// Waited is the longest time that a call had waited, in microseconds.
	Waited int64
	// Settled has the rules, by their numbers, whose decisions are settled.
	Settled map[uint32]bool
	// Together has pairs of rules, by their numbers, that have limited one call.
	Together map[[2]uint32]bool
	// Secrets is how many secrets name the callers. Those of two secrets cannot be compared.
	Secrets int
	// Share is the least share of callers that a recording has.
	Share float64
	// Guessed is how many recordings have a clock of which nothing is known.
	Guessed int
}

// sampled is how many differences of clocks are kept of a recording.
const sampled = 1024

// Survey reads all events once. It finds out by how much the clocks of the processes are apart from
// that of the store, where a rule tells that, and has Events correct their times.
func (f *Files) Survey() (*Survey, error) {
	s := &Survey{Settled: map[uint32]bool{}, Together: map[[2]uint32]bool{}, Share: 1}
	apart := map[*Recording][]int64{}
	err := f.events(true, func(r *Recording, ev *Event) error {
		if s.Calls+s.Settlements == 0 {
			s.From, s.To = ev.Time, ev.Time
		}
		s.From, s.To = min(s.From, ev.Time), max(s.To, ev.Time)
		for i := 1; i < len(ev.Limits); i++ {
			s.Together[[2]uint32{ev.Limits[0].Rule, ev.Limits[i].Rule}] = true
		}
		if ev.Settles {
			s.Settlements++
			for i := range ev.Limits {
				s.Settled[ev.Limits[i].Rule] = true
			}
			return nil
		}
		s.Calls++
		s.Waited = max(s.Waited, ev.Waited)
		if len(f.Recordings) == 1 {
			return nil
		}
		for i := range ev.Limits {
			if l := &ev.Limits[i]; l.Charged != 0 && l.Source == rules.SourceStore && isExact(f.Names.Rules[l.Rule].Rule) {
				if d := apart[r]; len(d) < sampled {
					apart[r] = append(d, l.Charged-ev.Time)
				} else {
					d[s.Calls%sampled] = l.Charged - ev.Time
				}
			}
		}
		return nil
	})
	secrets := map[string]bool{}
	for _, r := range f.Recordings {
		secrets[r.Secret] = true
		s.Share = min(s.Share, r.Share)
		if len(f.Recordings) == 1 {
			continue
		}
		if d := apart[r]; len(d) > 0 {
			slices.Sort(d)
			r.Offset = d[len(d)/2]
		} else {
			s.Guessed++
		}
	}
	s.Secrets = len(secrets)
	return s, err
}

// isExact reports whether a charge of the rule counts as when the store has made it.
func isExact(r *runtime.Rule) bool {
	return algorithm.RowOf(r.Algorithm).Takes("resolution") && r.Resolution == 0
}

// Events calls visit with the events of all recordings in the order of their times, each recording
// in its own order. An event is valid until visit returns.
func (f *Files) Events(visit func(*Event) error) error {
	return f.events(false, func(_ *Recording, ev *Event) error { return visit(ev) })
}
