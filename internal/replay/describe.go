package replay

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// complete makes the lists of a result.
func (r *Result) complete(run *run) {
	slices.SortFunc(r.Rules, func(a, b *Rule) int { return cmp.Compare(a.Name, b.Name) })
	for _, of := range r.Rules {
		of.Callers = len(of.sides)
		var changed []*Side
		for n, s := range of.sides {
			of.Peaks = append(of.Peaks, s.peak)
			if s.Was > 0 {
				of.HitWas++
			}
			if s.Now > 0 {
				of.HitNow++
			}
			if s.Now > 0 && s.Was == 0 {
				of.NewlyHit++
			}
			if s.Was != s.Now || s.Newly > 0 {
				s.Caller = r.name(n)
				changed = append(changed, s)
			}
		}
		slices.Sort(of.Peaks)
		slices.SortFunc(changed, func(a, b *Side) int {
			return cmp.Or(cmp.Compare(b.Newly, a.Newly), cmp.Compare(b.Was-b.Now, a.Was-a.Now), cmp.Compare(a.Caller, b.Caller))
		})
		of.Sides = changed[:min(len(changed), maxSides)]
		for _, name := range slices.Sorted(maps.Keys(of.labels)) {
			of.Labels = append(of.Labels, *of.labels[name])
		}
	}
	r.describe(run)
	r.Notes = append(r.notes(run), r.others...)
}

// name returns how a caller is named.
func (r *Result) name(caller uint32) string {
	c := r.callers.Callers[caller]
	if c == record.Everybody {
		return "everybody"
	}
	return hex.EncodeToString(c[:8])
}

// describe says what each rule was and is, by the terms that most of its calls had.
func (r *Result) describe(run *run) {
	most := map[*Rule]int64{}
	others := map[*Rule][]string{}
	for i, s := range r.callers.Rules {
		of := r.rules[s.Declared.Name]
		if of == nil || i >= len(r.calls) || r.calls[i] == 0 {
			continue
		}
		text := Text(s.Rule, s.Rule.Max)
		if r.calls[i] <= most[of] {
			others[of] = append(others[of], text)
			continue
		}
		if of.Was != "" && of.Was != text {
			others[of] = append(others[of], of.Was)
		}
		most[of], of.Was, of.Now = r.calls[i], text, "gone"
		if now, max, on := run.simulations[1].change(s, s.Rule.Max); on {
			of.Now, of.Limit, of.rule = Text(now, max), max, now
		}
	}
	for _, of := range r.Rules {
		if len(others[of]) > 0 {
			r.others = append(r.others, fmt.Sprintf("Of %d calls of %s %d had other terms for a time: %s.", of.Calls, of.Name, of.Calls-most[of], strings.Join(slices.Compact(others[of]), "; ")))
		}
	}
}

// Changed is the rule after the change, or nil if it is gone.
func (of *Rule) Changed() *runtime.Rule { return of.rule }

// KeyBytes estimates how much a key with so many events takes in Redis: 100 bytes, and the events of
// a log.
func KeyBytes(r *runtime.Rule, events int64) int64 {
	if r == nil {
		return 100
	}
	has := algorithm.Need(0)
	if r.Storage == runtime.StoragePacked {
		has = algorithm.Packing
	}
	each := algorithm.Choose(r.Algorithm, has).Row().EventBytes
	if events <= algorithm.Few {
		return 100 + each[0]*events
	}
	return 100 + each[1]*events
}

// Text describes a rule in a few words.
func Text(r *runtime.Rule, max int64) string {
	text := fmt.Sprintf("%d per %v", max, r.Window)
	if algorithm.RowOf(r.Algorithm).Is(algorithm.Lends) {
		text = fmt.Sprintf("%d at a time", max)
	} else if r.Period != rule.NoPeriod {
		text = fmt.Sprintf("%d per %v", max, r.Period)
	}
	if r.Burst > 0 {
		text += fmt.Sprintf(", burst %d", r.Burst)
	}
	text += ", " + r.Algorithm.String()
	if r.Headroom > 0 {
		text += fmt.Sprintf(", headroom %d", r.Headroom)
	} else if r.Headroom < 0 {
		text += ", shared"
	}
	if r.Wait > 0 {
		text += fmt.Sprintf(", wait %v", r.Wait)
	}
	if !r.Mode.Refuses() {
		text += ", " + r.Mode.String()
	}
	return text
}
