package runtime

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// A limitedLog writes one line a second for each rule and kind, so that a flood
// of calls is not also a flood of lines. A line never holds a key, which is made of
// what callers send, nor a server's address.
type limitedLog struct {
	loggers  []*slog.Logger // nil: slog.Default as it is at the time of a line
	panicked func(broken *slog.Logger, value any)
	rules    ruleTable[ruleLog]
	others   ruleLog                 // of the rules beyond the table's bound
	recent   atomic.Pointer[ruleLog] // of the last denial's line: found quickly in a flood
}

type ruleLog struct {
	rule                *Rule // as declared
	degraded, unsettled throttle
	emptyPart           atomic.Bool // a line was written
	sharedKey           atomic.Bool // likewise
	denied              stripedThrottle
}

// newLimitedLog returns a log that calls panicked when a handler has panicked.
func newLimitedLog(loggers []*slog.Logger, panicked func(broken *slog.Logger, value any)) *limitedLog {
	return &limitedLog{loggers: loggers, panicked: panicked}
}

func (l *limitedLog) degraded(r *Rule, policy FailurePolicy, err error) {
	if skipped, ok := l.of(r).degraded.due(instant()); ok {
		l.write(slog.LevelWarn, "rate limit not decided by its store", skipped,
			slog.String("rule", r.Name), slog.String("fail", policy.String()),
			slog.String("class", ClassOf(err).String()), slog.Any("error", err))
	}
}

func (l *limitedLog) unsettled(r *Rule, err error) {
	if skipped, ok := l.of(r).unsettled.due(instant()); ok {
		l.write(slog.LevelWarn, "a decided call could not be settled: its cost stays as it was reserved", skipped,
			slog.String("rule", r.Name), slog.String("class", ClassOf(err).String()), slog.Any("error", err))
	}
}

// shadowDenied reports a denial by a shadow limit, of a call that arrived at an instant.
func (l *limitedLog) shadowDenied(rule *Rule, cost int64, d *Decision, arrived time.Duration) {
	if skipped, ok := l.of(rule).denied.due(arrived, 0); ok {
		l.denied(rule, cost, d, skipped)
	}
}

// denied writes the line about a denial.
func (l *limitedLog) denied(rule *Rule, cost int64, d *Decision, skipped int64) {
	l.recent.Store(l.of(rule))
	attrs := []slog.Attr{
		slog.String("rule", rule.Name), slog.String("mode", rule.Mode.String()),
		slog.Int64("limit", d.Limit), slog.Int64("cost", cost),
		retryAfter(d.RetryAfter), slog.String("source", d.Source.String()),
	}
	if d.Blocked {
		attrs = append(attrs, slog.Bool("blocked", true))
	}
	l.write(slog.LevelInfo, "call over its rate limit", skipped, attrs...)
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
	if l.of(r).emptyPart.CompareAndSwap(false, true) {
		l.write(slog.LevelWarn, "a part of a rate limit's key is empty: all callers that lack it share one limit", 0, slog.String("rule", r.Name))
	}
}

// sharedKey reports that a limit in shadow mode is left out of calls that have
// another limit on its key, once for each rule.
func (l *limitedLog) sharedKey(shadow, other *Rule) {
	if l.of(shadow).sharedKey.CompareAndSwap(false, true) {
		l.write(slog.LevelWarn, "a rate limit in shadow mode is not counted for calls that have another limit on its key: give it a prefix of its own", 0,
			slog.String("rule", shadow.Name), slog.String("other", other.Name))
	}
}

func (l *limitedLog) of(r *Rule) *ruleLog {
	r = r.declaration()
	if recent := l.recent.Load(); recent != nil && recent.rule == r {
		return recent
	}
	if found := l.rules.of(r); found != nil {
		return found
	}
	l.rules.keep(r, &ruleLog{rule: r})
	if found := l.rules.of(r); found != nil {
		return found
	}
	return &l.others
}

// write writes a line to every logger. A handler that panics keeps the line
// from no other logger.
func (l *limitedLog) write(level slog.Level, msg string, skipped int64, attrs ...slog.Attr) {
	attrs = withSkipped(attrs, skipped)
	for _, logger := range l.loggers {
		logger = orDefault(logger)
		if value := writeLine(logger, level, msg, attrs); value != nil {
			l.panicked(logger, value)
		}
	}
}

// writeLine returns what the logger's handler has panicked with, or nil.
func writeLine(logger *slog.Logger, level slog.Level, msg string, attrs []slog.Attr) (panicked any) {
	defer func() { panicked = recover() }()
	logger.LogAttrs(context.Background(), level, msg, attrs...)
	return nil
}

func withSkipped(attrs []slog.Attr, skipped int64) []slog.Attr {
	if skipped > 0 {
		attrs = append(attrs, slog.Int64("skipped", skipped))
	}
	return attrs
}

func orDefault(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.Default()
	}
	return logger
}
