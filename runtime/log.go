package runtime

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/report"
)

// A limitedLog writes one line a second for each rule and kind, so that a flood
// of calls is not also a flood of lines. A line never holds a key, which is made of
// what callers send, nor a server's address.
type limitedLog struct {
	report.Log
	rules  ruleTable[ruleLog]
	others ruleLog                 // of the rules beyond the table's bound
	recent atomic.Pointer[ruleLog] // of the last denial's line: found quickly in a flood
}

type ruleLog struct {
	rule                      *Rule // as declared
	degraded, unsettled, held report.Throttle
	emptyPart                 atomic.Bool // a line was written
	sharedKey                 atomic.Bool // likewise
	denied                    report.StripedThrottle
}

func (l *limitedLog) degraded(r *Rule, policy FailurePolicy, err error) {
	if skipped, ok := l.linesOf(r).degraded.Due(clock.Now()); ok {
		l.Write(slog.LevelWarn, "rate limit not decided by its store", skipped,
			slog.String("rule", r.Name), slog.String("fail", policy.String()),
			slog.String("class", ClassOf(err).String()), slog.Any("error", err))
	}
}

func (l *limitedLog) unsettled(r *Rule, err error) {
	if skipped, ok := l.linesOf(r).unsettled.Due(clock.Now()); ok {
		l.Write(slog.LevelWarn, "a decided call could not be settled: its cost stays as it was reserved", skipped,
			slog.String("rule", r.Name), slog.String("class", ClassOf(err).String()), slog.Any("error", err))
	}
}

func (l *limitedLog) heldOff(r *Rule, d time.Duration, bounded bool, err error) {
	if skipped, ok := l.linesOf(r).held.Due(clock.Now()); ok {
		attrs := []slog.Attr{slog.String("rule", r.Name), slog.Duration("hold", d), slog.Bool("bounded", bounded)}
		text := "calls are held back, as the results of a call ask"
		if err != nil {
			text = "calls are held back by this process alone"
			attrs = append(attrs, slog.String("class", ClassOf(err).String()), slog.Any("error", err))
		}
		l.Write(slog.LevelWarn, text, skipped, attrs...)
	}
}

// shadowDenied reports a denial by a shadow limit, of a call that arrived at an instant.
func (l *limitedLog) shadowDenied(rule *Rule, cost int64, d *Decision, arrived time.Duration) {
	if skipped, ok := l.linesOf(rule).denied.Due(arrived, 0); ok {
		l.denied(rule, cost, d, skipped)
	}
}

// deny logs the denial that a decision is, about a call that arrived at an instant,
// and returns its caller's error.
func (l *limitedLog) deny(rule *Rule, cost int64, d *Decision, arrived time.Duration) error {
	b := errorBooks.Get().(*errorBook)
	if skipped, ok := l.linesOf(rule).denied.Due(arrived, b.stripe); ok {
		l.denied(rule, cost, d, skipped)
	}
	e := b.issue()
	e.Rule, e.Limit, e.Remaining, e.RetryAfter, e.Blocked, e.rule = d.Rule, d.Limit, d.Remaining, d.RetryAfter, d.Blocked, rule
	e.Source = d.Source
	errorBooks.Put(b)
	return e
}

// denied writes the line about a denial.
func (l *limitedLog) denied(rule *Rule, cost int64, d *Decision, skipped int64) {
	l.recent.Store(l.linesOf(rule))
	attrs := []slog.Attr{
		slog.String("rule", rule.Name), slog.String("mode", rule.Mode.String()),
		slog.Int64("limit", d.Limit), slog.Int64("cost", cost),
		retryAfter(d.RetryAfter), slog.String("source", d.Source.String()),
	}
	if d.Blocked {
		attrs = append(attrs, slog.Bool("blocked", true))
	}
	l.Write(slog.LevelInfo, "call over its rate limit", skipped, attrs...)
}

// retryAfter returns the attribute of a denial's RetryAfter.
func retryAfter(d time.Duration) slog.Attr {
	const key = "retry_after"
	if d == Never {
		return slog.String(key, "never")
	}
	return slog.Duration(key, d)
}

// emptyPart reports that a part of a key is empty, once for each rule: it is
// either meant or wrong for every call.
func (l *limitedLog) emptyPart(r *Rule) {
	if l.linesOf(r).emptyPart.CompareAndSwap(false, true) {
		l.Write(slog.LevelWarn, "a part of a rate limit's key is empty: all callers that lack it share one limit", 0, slog.String("rule", r.Name))
	}
}

// sharedKey reports that a limit in shadow mode is left out of calls that have
// another limit on its key, once for each rule.
func (l *limitedLog) sharedKey(shadow, other *Rule) {
	if l.linesOf(shadow).sharedKey.CompareAndSwap(false, true) {
		l.Write(slog.LevelWarn, "a rate limit in shadow mode is not counted for calls that have another limit on its key: give it a prefix of its own", 0,
			slog.String("rule", shadow.Name), slog.String("other", other.Name))
	}
}

// linesOf returns what was written about a rule.
func (l *limitedLog) linesOf(r *Rule) *ruleLog {
	r = r.declaration()
	if recent := l.recent.Load(); recent != nil && recent.rule == r {
		return recent
	}
	if found := l.rules.find(r); found != nil {
		return found
	}
	l.rules.keep(r, &ruleLog{rule: r})
	if found := l.rules.find(r); found != nil {
		return found
	}
	return &l.others
}

// pageErrors is how many errors a page has. A page takes 2 KiB.
const pageErrors = 36

// An errorBook gives each denial an error of its own, of which it takes many at a time
// from the heap. A page of errors lives as long as any of them. A book is used by
// one goroutine at a time.
type errorBook struct {
	page   *[pageErrors]LimitedError
	next   int    // error on the page
	stripe uint32 // of its users in a [report.StripedThrottle]
}

// errorBooks has about one book for each processor.
var errorBooks = sync.Pool{New: func() any { return &errorBook{next: pageErrors, stripe: lastStripe.Add(1)} }}

var lastStripe atomic.Uint32

// issue returns an error that nobody else has.
func (b *errorBook) issue() *LimitedError {
	if b.next == pageErrors {
		b.page, b.next = new([pageErrors]LimitedError), 0
	}
	e := &b.page[b.next]
	b.next++
	return e
}
