package runtime

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/observe"
)

// unusedAfter is how long a limiter may have rules without a call.
const unusedAfter = time.Minute

// Findings returns what is declared and does not hold at present, by this limiter, its store and
// its overrides, and by what the program has beside its limiters: middleware, interceptors and
// clients. It is sorted, and holds at most 1,000 of each. Each was logged once, with its code,
// when it was found. What is over is left out.
//
// It cannot see calls of what is not wrapped, nor whether a number is the one that was meant.
func (l *Limiter) Findings() []observe.Finding {
	all := append(l.ownFindings(), findingsOf(&findings.Process)...)
	slices.SortStableFunc(all, func(a, b observe.Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Rule, b.Rule))
	})
	return all
}

// ownFindings returns what the limiter itself, its store and its overrides have found.
func (l *Limiter) ownFindings() []observe.Finding {
	if l.wasCalled() {
		l.events.Log.Remove(report.Unused)
	}
	l.checkChanges()
	if l.redis != nil {
		for rule, other := range l.redis.accounts.Shared() {
			l.events.Log.Find(report.LedgerShared, rule, "", slog.String("other", other))
		}
	}
	if l.redis != nil && l.redis.accounts.Behind() {
		l.events.Log.Find(report.LedgerBehind, "", "")
	} else {
		l.events.Log.Remove(report.LedgerBehind)
	}
	l.removeFindings(report.DistinctKeys, (*findings.Sample).Shared)
	l.removeFindings(report.NothingCharged, (*findings.Sample).Charged)
	l.removeFindings(report.AllRefunded, (*findings.Sample).Kept)
	return findingsOf(l.events.Log.Lists[0])
}

func (l lent) Found() (all []bridge.Found) {
	l.ownFindings() // by which some are over
	for _, list := range []*findings.List{l.events.Log.Lists[0], &findings.Process} {
		for _, f := range append(list.All(), list.Past()...) {
			all = append(all, bridge.Found{Finding: f.Finding, Until: f.Until, Times: f.Times, Severe: f.Severe})
		}
	}
	return all
}

func findingsOf(list *findings.List) (all []observe.Finding) {
	for _, f := range list.All() {
		all = append(all, f.Finding)
	}
	return all
}

// removeFindings takes what a line says of rules from the list, where calls show that it is over.
func (l *Limiter) removeFindings(line report.Line, over func(*findings.Sample) bool) {
	l.events.Log.RemoveRules(line, func(name string) bool {
		for rule, s := range l.plans.Samples.All() {
			if rule.Name == name && over(s) {
				return true
			}
		}
		return false
	})
}

// FindingsError is the error of [Limiter.Warm] for what a limiter has found so far.
type FindingsError struct{ Findings []observe.Finding }

// Error names the first finding.
func (e *FindingsError) Error() string {
	if n := len(e.Findings); n > 1 {
		return fmt.Sprintf("%v (and %d more, see Limiter.Findings)", e.Findings[0], n-1)
	}
	return e.Findings[0].String()
}

// wasCalled reports whether a call has met a rule.
func (l *Limiter) wasCalled() bool {
	for _, s := range l.plans.Samples.All() {
		if s.Met.Load() {
			return true
		}
	}
	return false
}

// checkUse says after a while that no call has met any of the rules.
func (l *Limiter) checkUse() {
	l.checkChanges()
	if l.registered.Len() > 0 && !l.wasCalled() && !l.plans.Closed() {
		l.events.Log.Find(report.Unused, "", "")
	}
}
