package report

import (
	"log/slog"

	"github.com/rategen/rategen/runtime/internal/findings"
)

// Find puts what a line says on the lists, of a rule, or of none if that is empty, and what else
// it is about. It writes the line if a list did not have it.
func (l *Lines) Find(line Line, rule, detail string, attrs ...slog.Attr) {
	if !l.addFinding(line, rule, detail) {
		return
	}
	if rule != "" {
		attrs = append([]slog.Attr{slog.String("rule", rule)}, attrs...)
	}
	l.Alert(line, 0, attrs...)
}

// addFinding puts what a line says on the lists, and reports whether it is new to one.
func (l *Lines) addFinding(line Line, rule, detail string) (added bool) {
	f := findings.Finding{Fades: line.fades, Severe: line.level >= slog.LevelError}
	f.Code, f.Rule, f.Detail, f.Text, f.Help = line.code, rule, detail, line.text, line.help
	for _, list := range l.Lists {
		added = list.Add(f) || added
	}
	return added
}

// Remove takes what a line says from the lists.
func (l *Lines) Remove(line Line) { l.RemoveRules(line, func(string) bool { return true }) }

// RemoveRules takes what a line says of some rules from the lists.
func (l *Lines) RemoveRules(line Line, of func(rule string) bool) {
	for _, list := range l.Lists {
		list.Remove(line.code, func(f findings.Finding) bool { return of(f.Rule) })
	}
}
