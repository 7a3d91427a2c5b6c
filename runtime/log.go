package runtime

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// logInterval is the least time between two log lines of one rule and kind.
const logInterval = time.Second

// A limitedLog writes one line a second for each rule and kind, so that a flood
// of calls is not also a flood of lines. A line never holds a key: keys are
// made of what callers send.
type limitedLog struct {
	logger *slog.Logger // nil: slog.Default, as it is then
	rules  ruleTable[ruleLog]
	others ruleLog                 // of the rules that are too many
	recent atomic.Pointer[ruleLog] // of the last denial's line: found quickly in a flood
}

type ruleLog struct {
	rule             *Rule // as declared
	degraded, denied throttle
}

func newLimitedLog(logger *slog.Logger) *limitedLog { return &limitedLog{logger: logger} }

func (l *limitedLog) degraded(r *Rule, policy FailurePolicy, err error) {
	if skipped, ok := l.of(r).degraded.due(instant()); ok {
		l.write(slog.LevelWarn, "rate limit not decided by its store", skipped,
			slog.String("rule", r.Name), slog.String("fail", policy.String()), slog.Any("error", err))
	}
}

// denied reports a denial by a call that came at an instant.
func (l *limitedLog) denied(c *Charge, source Source, came time.Duration) {
	rule := l.of(c.Rule)
	if skipped, ok := rule.denied.due(came); ok {
		l.recent.Store(rule)
		l.write(slog.LevelInfo, "call over its rate limit", skipped,
			slog.String("rule", c.Rule.Name), slog.String("mode", c.Rule.Mode.String()),
			slog.Int64("limit", c.capacity()), slog.Int64("cost", c.Cost),
			slog.Duration("retry_after", c.RetryAfter), slog.String("source", source.String()))
	}
}

func (l *limitedLog) of(r *Rule) *ruleLog {
	if r.declared != nil {
		r = r.declared
	}
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

// A throttle lets one line pass in every logInterval.
type throttle struct {
	last    atomic.Int64 // instant of the last line; 0: there was none
	skipped atomic.Int64
}

// due reports whether a line may be written at an instant, and how many were not since
// the last one.
func (t *throttle) due(now time.Duration) (skipped int64, ok bool) {
	// Of two calls the one that came later may get here first.
	last := t.last.Load()
	if last != 0 && (now-time.Duration(last)).Abs() < logInterval || !t.last.CompareAndSwap(last, int64(now)) {
		t.skipped.Add(1)
		return 0, false
	}
	return t.skipped.Swap(0), true
}

func (l *limitedLog) write(level slog.Level, msg string, skipped int64, attrs ...slog.Attr) {
	logger := l.logger
	if logger == nil {
		logger = slog.Default()
	}
	if skipped > 0 {
		attrs = append(attrs, slog.Int64("skipped", skipped))
	}
	logger.LogAttrs(context.Background(), level, msg, attrs...)
}
