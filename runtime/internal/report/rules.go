package report

import (
	"cmp"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/rule"
)

// Lines are what limiters and stores have to say. There is one a second for each rule and
// kind of line, so that a flood of calls is not also a flood of lines. Rules are as they were
// declared.
type Lines struct {
	Log
	// Lists are those of the limiters that the lines are of.
	Lists []*findings.List

	overruled  findings.List // by rule and route
	rules      findings.Map[*rule.Rule, ruleLines]
	otherRules ruleLines                 // of the rules beyond the map's bound
	recentRule atomic.Pointer[ruleLines] // of the last refusal's line: found quickly in a flood

	steps, renewals Throttle // of clocks that stepped back, and of permits that were not renewed
	classes         sync.Map // class of what was not decided -> *Throttle
}

// ruleLines are what was written about a rule.
type ruleLines struct {
	declared        *rule.Rule
	undecided       lastLine
	unsettled, held Throttle
	found           Once
	refused         StripedThrottle
}

// Known returns how many rules were written about, at most.
func (l *Lines) Known() int { return l.rules.Len() }

func (l *Lines) ruleLines(declared *rule.Rule) *ruleLines {
	if recent := l.recentRule.Load(); recent != nil && recent.declared == declared {
		return recent
	}
	if found := l.rules.Find(declared); found != nil {
		return found
	}
	l.rules.Keep(declared, &ruleLines{declared: declared})
	return cmp.Or(l.rules.Find(declared), &l.otherRules)
}

// Undecided says that a rule's store has not decided a call, why, and which policy did. A rule has
// one line a second, and so have all rules together for each class: when a store is away, each
// of hundreds of rules has the same to say. The list has every rule.
func (l *Lines) Undecided(r *rule.Rule, policy, class string, err error) {
	now := clock.Now()
	found, known := l.classes.Load(class)
	if !known {
		found, _ = l.classes.LoadOrStore(class, new(Throttle))
	}
	throttle := found.(*Throttle)
	if !l.ruleLines(r).undecided.due(now) {
		throttle.skipped.Add(1)
		return
	}
	l.addFinding(Undecided, r.Name, class)
	if skipped, due := throttle.Due(now); due {
		l.Alert(Undecided, skipped, slog.String("rule", r.Name), slog.String("fail", policy), slog.String("class", class),
			slog.Any("error", err))
	}
}

// Unsettled says that a call by a rule was not settled, and why.
func (l *Lines) Unsettled(r *rule.Rule, class string, err error) {
	if skipped, due := l.ruleLines(r).unsettled.Due(clock.Now()); due {
		l.Alert(Unsettled, skipped, slog.String("rule", r.Name), slog.String("class", class), slog.Any("error", err))
	}
}

// Held says that calls of a rule are held back for a time, bounded or not. If err is not nil
// it is why the store does not do so.
func (l *Lines) Held(r *rule.Rule, d time.Duration, bounded bool, class string, err error) {
	skipped, due := l.ruleLines(r).held.Due(clock.Now())
	if !due {
		return
	}
	line, attrs := Held, []slog.Attr{slog.String("rule", r.Name), slog.Duration("hold", d), slog.Bool("bounded", bounded)}
	if err != nil {
		line, attrs = HeldAlone, append(attrs, slog.String("class", class), slog.Any("error", err))
	}
	l.Alert(line, skipped, attrs...)
}

// First reports whether a line about a rule is to be written, which every call may find: once.
func (l *Lines) First(r *rule.Rule, line Line) bool { return l.ruleLines(r).found.First(line) }

// RefusalDue reports whether [Lines.Refused] may be called for a rule's refusal of a call that
// arrived at an instant, and how many were left out since the last time. Stripe is that of a
// [StripedThrottle].
func (l *Lines) RefusalDue(r *rule.Rule, arrived time.Duration, stripe uint32) (skipped int64, due bool) {
	return l.ruleLines(r).refused.Due(arrived, stripe)
}

// A Refusal is what the log says of one.
type Refusal struct {
	Mode, Source string
	Limit, Cost  int64
	RetryAfter   time.Duration // the largest one: never
	Blocked      bool
}

// Refused says that a rule has refused a call.
func (l *Lines) Refused(r *rule.Rule, skipped int64, d Refusal) {
	l.recentRule.Store(l.ruleLines(r))
	after := slog.Duration("retry_after", d.RetryAfter)
	if d.RetryAfter == math.MaxInt64 {
		after = slog.String("retry_after", "never")
	}
	attrs := []slog.Attr{
		slog.String("rule", r.Name), slog.String("mode", d.Mode), slog.Int64("limit", d.Limit), slog.Int64("cost", d.Cost),
		after, slog.String("source", d.Source),
	}
	if d.Blocked {
		attrs = append(attrs, slog.Bool("blocked", true))
	}
	l.Write(slog.LevelInfo, "call over its rate limit", skipped, attrs...)
}
