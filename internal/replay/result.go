package replay

import (
	"time"

	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// Bounds of a result.
const (
	slots      = 120       // of the time of the records
	maxTracked = 1_000_000 // callers of rules
)

// A Result is what a replay found.
type Result struct {
	From    time.Time     `json:"from"`
	To      time.Time     `json:"to"`
	Calls   int64         `json:"calls"`
	Damage  record.Damage `json:"damage"`
	Share   float64       `json:"share_of_callers"`
	Equal   int64         `json:"decided_as_recorded"`
	Unequal int64         `json:"decided_otherwise"` // than was recorded, by the same rules
	// Undecided calls are those that no store decided.
	Undecided int64 `json:"undecided"`
	// NewlyRefused calls go on before and not after, and NewlyAdmitted ones the other way round.
	NewlyRefused  int64    `json:"newly_refused"`
	NewlyAdmitted int64    `json:"newly_admitted"`
	Rules         []*Rule  `json:"rules"`
	Notes         []string `json:"notes"`

	rules        map[string]*Rule
	of           []*Rule // by the numbers of the record
	callers      *record.Names
	tracked      int
	untracked    int64
	assumedHolds int64
	unsettled    int64   // calls whose real cost nobody knows
	calls        []int64 // by the numbers of rules in the record
	queued       int64
	others       []string // notes of rules that had other terms for a time
	span         int64
}

// Counts are how many calls had which outcome at a rule.
type Counts struct {
	Admitted      int64 `json:"admitted"`
	Refused       int64 `json:"refused"`
	ShadowRefused int64 `json:"shadow_refused"`
	Others        int64 `json:"refused_by_others"`
	Delayed       int64 `json:"delayed"`
	// Longest is the longest delay, and Delays the sum of all.
	Longest time.Duration `json:"longest_delay_ns"`
	Delays  time.Duration `json:"delays_ns"`
}

// A Rule is what a replay found about one rule.
type Rule struct {
	Name     string  `json:"name"`
	Was      string  `json:"was"`
	Now      string  `json:"now"`
	Calls    int64   `json:"calls"`
	Before   Counts  `json:"before"`
	After    Counts  `json:"after"`
	Callers  int     `json:"callers"`
	HitWas   int     `json:"callers_refused_before"`
	HitNow   int     `json:"callers_refused_after"`
	NewlyHit int     `json:"callers_newly_refused"`
	Sides    []*Side `json:"changed_callers"` // those that change most, see maxSides
	Labels   []Label `json:"labels,omitempty"`
	// Refused are the refusals before and after in each slot of the time.
	Refused [slots][2]int64 `json:"-"`
	// Peaks are how many callers used at most so much in a window.
	Peaks []int64 `json:"-"`
	// Limit is the max after the change, of a rule whose calls bring none.
	Limit int64 `json:"-"`
	// About says that the numbers are estimates: for how long some calls would have run nobody knows.
	About bool `json:"about,omitempty"`

	rule   *runtime.Rule // after the change
	window int64
	sides  map[uint32]*Side
	labels map[string]*Label
}

// A Side is what becomes of one caller of a rule.
type Side struct {
	Caller string `json:"caller"`
	Calls  int64  `json:"calls"`
	Was    int64  `json:"refused_before"`
	Now    int64  `json:"refused_after"`
	// Newly is how many calls are refused after and not before, from First to Last.
	Newly int64     `json:"newly_refused"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`

	peak, half, sum, before int64
}

// A Label is what becomes of the calls with one label.
type Label struct {
	Label string `json:"label"`
	Calls int64  `json:"calls"`
	Was   int64  `json:"refused_before"`
	Now   int64  `json:"refused_after"`
}

// maxSides is how many callers of a rule a result names.
const maxSides = 20

func newResult(f *record.Files, s *record.Survey) *Result {
	return &Result{From: time.UnixMicro(s.From).UTC(), To: time.UnixMicro(s.To).UTC(), Damage: f.Damage, Share: s.Share,
		rules: map[string]*Rule{}, callers: f.Names, span: max(1, s.To-s.From+1)}
}

// compare compares what was decided by the rules of the record with what was recorded.
func (r *Result) compare(ev *record.Event, o *outcome) {
	for i := range ev.Limits {
		if o.verdicts[i] != ev.Limits[i].Verdict {
			r.Unequal++
			return
		}
	}
	r.Equal++
}

// rule returns the result of the rule with a number in the record.
func (r *Result) rule(number uint32) *Rule {
	for int(number) >= len(r.of) {
		r.of, r.calls = append(r.of, nil), append(r.calls, 0)
	}
	if of := r.of[number]; of != nil {
		return of
	}
	s := r.callers.Rules[number]
	of := r.rules[s.Declared.Name]
	if of == nil {
		of = &Rule{Name: s.Declared.Name, window: s.Rule.Window.Microseconds(), sides: map[uint32]*Side{},
			labels: map[string]*Label{}}
		r.rules[s.Declared.Name], r.Rules = of, append(r.Rules, of)
	}
	r.of[number] = of
	return of
}

// count counts a call that both simulations have decided.
func (r *Result) count(j *job) {
	r.Calls++
	before, after := &j.outcomes[0], &j.outcomes[1]
	if after.refused && !before.refused {
		r.NewlyRefused++
	} else if before.refused && !after.refused {
		r.NewlyAdmitted++
	}
	ev := &j.ev
	slot := min(slots-1, max(0, (ev.Time-r.From.UnixMicro())*slots/r.span))
	for i := range ev.Limits {
		l := &ev.Limits[i]
		of := r.rule(l.Rule)
		of.Calls++
		r.calls[l.Rule]++
		was, now := of.Before.count(before, i), of.After.count(after, i)
		of.Refused[slot][0] += was
		of.Refused[slot][1] += now
		if ev.Label != "" {
			label := of.labels[ev.Label]
			if label == nil {
				label = &Label{Label: ev.Label}
				of.labels[ev.Label] = label
			}
			label.Calls, label.Was, label.Now = label.Calls+1, label.Was+was, label.Now+now
		}
		r.side(of, ev, l, was, now)
	}
}

// count counts the outcome of a limit, and returns 1 if that has refused the call.
func (c *Counts) count(o *outcome, i int) int64 {
	v := o.verdicts[i]
	switch {
	case o.elsewhere:
		c.Others++
	case o.removed[i] && !o.refused:
		c.Admitted++
	case o.removed[i], v == observe.VerdictNotCharged:
		c.Others++
	case v == observe.VerdictRefused:
		c.Refused++
		return 1
	case v == observe.VerdictShadowRefused:
		c.ShadowRefused++
	default:
		c.Admitted++
		if o.delayed > 0 {
			c.Delayed++
			c.Delays += o.delayed
			c.Longest = max(c.Longest, o.delayed)
		}
	}
	return 0
}

// side counts what becomes of a caller. Peaks are of two halves of a window that follow each other,
// which is less than a window at times.
func (r *Result) side(of *Rule, ev *record.Event, l *record.Limit, was, now int64) {
	who := l.Caller
	if l.Weight != 0 {
		who = l.Share
	}
	s := of.sides[who]
	if s == nil {
		if r.tracked == maxTracked {
			r.untracked++
			return
		}
		r.tracked++
		s = new(Side)
		of.sides[who] = s
	}
	s.Calls, s.Was, s.Now = s.Calls+1, s.Was+was, s.Now+now
	if now > was {
		if s.Newly == 0 {
			s.First = time.UnixMicro(ev.Time).UTC()
		}
		s.Newly++
		s.Last = time.UnixMicro(ev.Time).UTC()
	}
	if of.window == 0 {
		s.sum += l.Cost // a period of the calendar: all of the record
	} else if half := ev.Time * 2 / of.window; half == s.half {
		s.sum += l.Cost
	} else {
		s.before = s.sum
		if half != s.half+1 {
			s.before = 0
		}
		s.half, s.sum = half, l.Cost
	}
	s.peak = max(s.peak, s.sum+s.before)
}
