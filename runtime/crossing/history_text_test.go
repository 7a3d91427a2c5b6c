package crossing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime/internal/documents"
)

// A line is a step of a document, or a remark, and when it was done.
type line struct {
	at   time.Duration
	turn int64 // among those of one moment
	text string
}

// note notes a step of a document that is done now.
func (r *running) note(format string, args ...any) {
	r.history.note(line{r.moment(), r.work.Load(), fmt.Sprintf(format, args...)})
}

func (h *history) note(l line) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.text = strings.TrimSuffix(l.text, " -> ") // of a step without an answer
	h.steps = append(h.steps, l)
}

// String returns the history as a document of limiters, with the answers that were given: moved to
// runtime/testdata/limiter it is a test. What documents have no step for is a remark.
func (h *history) String() string {
	p, b := h.program, new(strings.Builder)
	fmt.Fprintf(b, "test crossing only=memory begins=%s", h.began.UTC().Format(time.RFC3339Nano))
	if !memorized(p) {
		fmt.Fprint(b, " leases")
	}
	fmt.Fprintln(b, "\n----")
	if p.Hasty || p.OneClient || p.Edited {
		fmt.Fprintf(b, "# hasty %t, one client %t, edited %t\n", p.Hasty, p.OneClient, p.Edited)
	}
	if p.Trip != (trip{}) {
		fmt.Fprintf(b, "# trips %+v\nstore is late %v\nstore is late %v back\n", p.Trip, p.Trip.There, p.Trip.Back)
	}
	options := fmt.Sprintf("replicas=%d poll=%v", p.Replicas, h.scope.poll())
	for _, r := range p.Rules {
		fmt.Fprintf(b, "rule %s %s\n", r.Name, document.Fields(r))
	}
	if p.Cap != nil {
		fmt.Fprintf(b, "rule cap %s\n", document.Fields(p.Cap))
		options += " cap=cap"
	}
	for i := range p.Processes {
		fmt.Fprintf(b, "limiter p%d %s\n", i, options)
	}
	lines := append(h.calls(), h.steps...)
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.turn, b.turn)) })
	at := time.Duration(0)
	for _, l := range lines {
		if l.at > at {
			fmt.Fprintf(b, "advance %v\n", l.at-at)
			at = l.at
		}
		fmt.Fprintln(b, l.text)
	}
	return b.String()
}

// calls returns what was asked, and how it was settled.
func (h *history) calls() (lines []line) {
	names := map[*asked]string{}
	for _, a := range h.asked {
		in := fmt.Sprintf("in p%d: ", a.process)
		add := func(at time.Duration, turn int64, format string, args ...any) {
			lines = append(lines, line{at, turn, strings.TrimSuffix(fmt.Sprintf(format, args...), " -> ")})
		}
		answer := documents.Told(a.d, a.err)
		if names[a] == "" {
			names[a] = fmt.Sprintf("c%d", a.number)
		}
		take := h.program.text(a.uses)
		if a.call.Deadline && a.call.Cancel > 0 {
			take += fmt.Sprint(" within ", a.call.Cancel)
		}
		switch {
		case a.more: // see noteCharge
		case a.call.Exempt:
			add(a.came, a.turn, "%sexempt %s as %s -> %s", in, take, names[a], answer)
		case a.each: // those of one TakeEach are told together, by the first
			var uses []use
			var answers []string
			for _, b := range h.asked[a.number:] {
				if b.each && b.process == a.process && b.came == a.came && b.knows == a.knows && len(uses) < len(a.call.Uses) && names[a] == fmt.Sprintf("c%d", a.number) {
					names[b] = fmt.Sprintf("e%d-%d", a.number, len(uses))
					uses, answers = append(uses, b.uses...), append(answers, documents.Told(b.d, b.err))
				}
			}
			if len(uses) > 0 {
				add(a.came, a.turn, "%seach %s as e%d- -> %s", in, h.program.text(uses), a.number, strings.Join(answers, ", "))
			}
		case a.knows == a.came:
			add(a.came, a.turn, "%stake %s as %s -> %s", in, take, names[a], answer)
		default:
			add(a.came, a.turn, "%sgo %s: take %s -> waits", in, names[a], take)
			if a.left() && !a.call.Deadline {
				add(a.knows, math.MaxInt64-1, "leave %s", names[a])
			}
			add(a.knows, math.MaxInt64, "end %s -> %s after %v", names[a], answer, a.knows-a.came)
		}
		for i, t := range a.reported {
			if t.yes && (len(a.uses) > 1 || a.knows != a.came) {
				add(a.knows, math.MaxInt64, "# %s: %v at %v by %v, max %d", a.uses[i], t.verdict, a.at, t.source, t.max)
			}
		}
		s := a.settled
		settle := fmt.Sprintf("%s %s", names[a], words(s.cost))
		switch {
		case !s.tried || a.call.Meter != nil:
		case s.mistake:
			add(s.came, s.turn, "in p%d: settle %s -> %s", (a.process+1)%h.program.Processes, settle, documents.Words(s.mistaken))
			fallthrough
		default:
			if a.call.Later && !(s.mistake && s.mistaken == nil) {
				add(s.came, s.turn, "%slater %s", in, settle)
			} else if !s.mistake || s.mistaken != nil {
				add(s.came, s.turn, "%ssettle %s -> %s", in, settle, documents.Words(s.err))
			}
			if s.twice {
				add(s.came, s.turn, "%ssettle %s -> %s", in, settle, documents.Words(s.again))
			}
		}
	}
	return lines
}

// text returns limits as documents name them.
func (p *program) text(uses []use) string {
	var all []string
	for _, u := range uses {
		all = append(all, u.String())
	}
	return strings.Join(all, " + ")
}

// String returns the limit as documents name it.
func (u use) String() string {
	key := u.name()
	if u.Key == nobody {
		key = "?"
	}
	text := fmt.Sprintf("rule%d/%s %d", u.Rule, key, u.Cost)
	if u.Max > 0 {
		text += fmt.Sprintf(" max=%d", u.Max)
	}
	if u.Weight > 0 {
		text += fmt.Sprintf(" share=%d:%d", u.Tenant, u.Weight)
	}
	if u.Zone != "" {
		text += fmt.Sprintf(" zone=%s:%d", u.Zone, u.Anchor)
	}
	return text
}

// noteCharge notes what became of a message, which may have waited.
func (s *stream) noteCharge(trip *asked, costs []int64, err error) {
	in, charge, answer := fmt.Sprintf("in p%d: ", s.number), fmt.Sprintf("charge m%d %s", s.first.number, words(costs)), documents.Words(err)
	if trip.knows == trip.came {
		s.history.note(line{trip.came, trip.turn, in + charge + " -> " + answer})
		return
	}
	call := fmt.Sprintf("m%d-%d", s.first.number, trip.turn)
	s.history.note(line{trip.came, trip.turn, in + "go " + call + ": " + charge + " -> waits"})
	s.history.note(line{trip.knows, math.MaxInt64, fmt.Sprintf("end %s -> %s after %v", call, answer, trip.knows-trip.came)})
}

// words returns numbers with blanks between them.
func words(costs []int64) string { return strings.Trim(fmt.Sprint(costs), "[]") }

// noteChange notes overrides in place of those before, which limiters read soon.
func (r *running) noteChange(c change) {
	for i := range r.processes {
		note := func(format string, args ...any) {
			r.note("in p%d: override %s unread", i, fmt.Sprintf(format, args...))
		}
		note("nothing")
		for declared, o := range c.Rules {
			note("rule%d %s", declared, document.Fields(o))
			for key, k := range o.Keys {
				note("rule%d/%s %s", declared, key, document.Fields(k))
			}
		}
		if c.Off && !c.Switch {
			note("all enabled=false")
		}
	}
}

// noteSwitch notes that limits are switched off, or on.
func (r *running) noteSwitch(off bool) {
	for i := range r.processes {
		r.note("in p%d: switch %s", i, map[bool]string{true: "off", false: "on"}[off])
	}
}
