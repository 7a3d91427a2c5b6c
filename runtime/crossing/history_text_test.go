package crossing

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// String tells the history, in the order of the decisions.
func (h *history) String() string {
	type line struct {
		at   time.Duration
		text string
	}
	var lines []line
	for _, a := range h.asked {
		result := "admitted"
		if a.err != nil {
			result = a.err.Error()
			if a.d.RetryAfter > 0 {
				result += fmt.Sprintf(" by %s, retry after %v", a.d.Rule, a.d.RetryAfter)
			}
		}
		var each []string
		for _, t := range a.reported {
			if t.yes {
				each = append(each, fmt.Sprintf("%v by %v of %d", t.verdict, t.source, t.max))
			} else {
				each = append(each, "-")
			}
		}
		more := ""
		if a.more {
			more = " more,"
		}
		lines = append(lines, line{a.start, fmt.Sprintf("#%d process %d%s %v: decided at %v, over at %v: %s, %v, left %d (%s)",
			a.number, a.process, more, a.uses, a.at, a.end, result, a.d.Source, a.d.Remaining, strings.Join(each, ", "))})
		if s := a.settled; s.tried {
			text := fmt.Sprintf("#%d settled at %v until %v: %v", a.number, s.cost, s.end, s.err)
			if s.end == endless {
				text = fmt.Sprintf("#%d settled at %v later", a.number, s.cost)
			}
			if s.mistake {
				text += fmt.Sprintf("; before, mistaken: %v", s.mistaken)
			}
			lines = append(lines, line{s.start, text})
		}
	}
	for _, r := range h.resets {
		lines = append(lines, line{r.from, fmt.Sprintf("reset of rule %d key %d until %v", r.rule, r.key, r.to)})
	}
	for _, c := range h.changes[1:] {
		lines = append(lines, line{c.from, fmt.Sprintf("%v, in force at %v", change{Rules: c.rules, Off: c.off}, c.to)})
	}
	for _, x := range h.holds {
		lines = append(lines, line{x.from, fmt.Sprintf("%v until %v: %v", hold{x.rule, x.key, x.by}, x.to, x.err)})
	}
	if h.closed < endless {
		lines = append(lines, line{h.closed, "process 0 is closed"})
	}
	for _, j := range h.jumps {
		lines = append(lines, line{j.from, fmt.Sprintf("%v", jump{j.by})})
	}
	for _, f := range h.faults {
		lines = append(lines, line{f.from, fmt.Sprintf("fault until %v: %v", f.to, f.fault)})
	}
	sort.SliceStable(lines, func(i, j int) bool { return lines[i].at < lines[j].at })
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "\n  %-12v %s", l.at, l.text)
	}
	return b.String()
}
