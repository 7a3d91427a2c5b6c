package report

import (
	"log/slog"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/observe"
)

// Hidden says that the client of a call that a rule has refused was told of something else,
// once for each rule and route.
func (l *Lines) Hidden(rule, route string) {
	var attrs []slog.Attr
	if route != "" {
		attrs = append(attrs, slog.String("route", route))
	}
	l.Find(Hidden, rule, route, attrs...)
}

// Overruled says that the client of a call that a rule has refused was told of that in place of what
// the program had answered, once for each rule and route.
func (l *Lines) Overruled(rule, route string) {
	if l.overruled.Add(findings.Finding{Finding: observe.Finding{Rule: rule, Detail: route}}) {
		l.Write(slog.LevelInfo, "a refused call was answered with an error that says nothing of it: the client got the refusal in its place", 0,
			slog.String("rule", rule), slog.String("route", route))
	}
}

// NotRenewed says that permits of a rule were not renewed.
func (l *Lines) NotRenewed(rule string, err error) {
	if skipped, due := l.renewals.Due(clock.Now()); due {
		l.Alert(NotRenewed, skipped, slog.String("rule", rule), slog.Any("error", err))
	}
}

// Breaker says that the circuit breaker of a node has opened or closed. The node is a server's
// address, or empty if there is one server or it is unknown. The line has a number in its place.
func (l *Lines) Breaker(node string, open bool) {
	attrs := serverOf(node)
	if open {
		l.Alert(BreakerOpen, 0, attrs...)
	} else {
		l.Write(slog.LevelInfo, "rate limit store responding again: circuit breaker closed", 0, attrs...)
	}
}

// Stepped says that the clock of a node has stepped, back if by is below 0.
func (l *Lines) Stepped(node string, by time.Duration) {
	line := SteppedForward
	if by < 0 {
		line, by = SteppedBack, -by
	}
	skipped, due := l.steps.Due(clock.Now())
	if !due {
		return
	}
	l.Alert(line, skipped, append([]slog.Attr{slog.Duration("by", by)}, serverOf(node)...)...)
}

// ReadsTooLong says that a client waits too long for answers: what to set, and how it is now. The
// line is for the first limiter on the client's store.
func (l *Lines) ReadsTooLong(first bool, set, now string) {
	if !first {
		l.addFinding(ReadsTooLong, "", set)
		return
	}
	l.Find(ReadsTooLong, "", set, slog.String("set", set), slog.String("now", now))
}

// KeysForgotten says that limits in memory, of at most so many keys, have forgotten what still
// counted, or a block, and which option raises the bound.
func (l *Lines) KeysForgotten(blocked bool, bound int, option string) {
	detail := option
	if blocked {
		detail += ", of blocked keys"
	}
	l.Find(KeysForgotten, "", detail, slog.Bool("blocked", blocked), slog.Int("max_keys", bound),
		slog.String("option", option))
}

// OverridesInForce says which rules are overridden, and whether limits are enabled.
func (l *Lines) OverridesInForce(enabled bool, rules []string) {
	l.Write(slog.LevelInfo, "overrides of rate limits are in force", 0, slog.Bool("enabled", enabled),
		slog.Int("overridden", len(rules)), slog.Any("rules", firstNames(rules)))
}

// OverridesFailed says why overrides did not come into force: they were rejected, or not read.
func (l *Lines) OverridesFailed(rejected bool, err error) {
	line, other := Unread, Rejected
	if rejected {
		line, other = Rejected, Unread
	}
	l.Remove(other)
	l.addFinding(line, "", "")
	l.Alert(line, 0, slog.Any("error", err))
}

// OverridesUnmet says which names are overridden that no rule has, each name once while it is so.
func (l *Lines) OverridesUnmet(rules []string) {
	l.RemoveRules(Unmet, func(rule string) bool { return !slices.Contains(rules, rule) })
	rules = slices.DeleteFunc(rules, func(rule string) bool { return !l.addFinding(Unmet, rule, "") })
	if len(rules) > 0 {
		l.Alert(Unmet, 0, slog.Int("unmet", len(rules)), slog.Any("rules", firstNames(rules)))
	}
}

// firstNames returns the beginnings of the first few names.
func firstNames(names []string) []string {
	first := slices.Clone(names[:min(len(names), 10)])
	for i, name := range first {
		first[i] = name[:min(len(name), 80)]
	}
	return first
}

// MemoryLines are what was last said of a store's memory. It is used by one goroutine.
type MemoryLines struct{ high, unknown bool }

// Unknown says once that a server does not tell how much memory it uses.
func (m *MemoryLines) Unknown(l *Lines, err error) {
	if !m.unknown {
		l.Alert(MemoryUnknown, 0, slog.Any("error", private.Hide(err)))
		m.unknown = true
	}
}

// Read says when a server begins and ceases to be short of memory, and when it begins to drop
// keys.
func (m *MemoryLines) Read(l *Lines, used, most, evicted int64, high bool) {
	m.unknown = false
	attrs := []slog.Attr{slog.Int64("used", used), slog.Int64("max", most)}
	if high && !m.high {
		l.Alert(ShortOfMemory, 0, attrs...)
	} else if m.high && !high {
		l.Write(slog.LevelInfo, "redis has memory again", 0, attrs...)
	}
	if evicted > 0 {
		l.Find(Evicted, "", "", slog.Int64("keys", evicted))
	} else {
		l.Remove(Evicted)
	}
	m.high = high
}
