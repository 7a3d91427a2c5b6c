package model

import (
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/internal/nearest"
)

// A Rule is a rule as its directive declares it, with the names that
// it has in the program: one variable to be written.
type Rule struct {
	*directive.Settings
	VarName string
	// Declared is where it is declared: package, interface and method.
	Declared string
	Name     string     // in errors, logs and metrics
	Prefix   string     // of the Redis key
	Source   string     // file and method: "employee.go: EmployeeService.GetByID"
	Max      *expr.Expr // a constant, or nil for the default; meaningless if dynamic
	Dynamic  bool       // the max depends on the call
	applies  bool       // to a method at least; of a limit of the whole interface
	// Constants are the constants, by option, that the generated rule refers to.
	Constants map[string]*expr.Expr
}

// most returns the max of a rule that is not dynamic.
func (r *Rule) most() int64 {
	if r.Max == nil {
		return directive.DefaultMax
	}
	n, _ := int64Of(r.Max.Const)
	return n
}

// KeyText returns the key as it is written in the directive.
func (r *Rule) KeyText() string {
	var parts []string
	for _, part := range r.Key() {
		parts = append(parts, part.Text)
	}
	return strings.Join(parts, ", ")
}

// checkMethods reports methods that a limit of a whole interface names and that the
// interface does not have.
func (b *Builder) checkMethods(w *Wrapper, s *directive.Settings) {
	var names []string
	for _, m := range w.Methods {
		names = append(names, m.Name)
	}
	for _, option := range []string{"except", "only"} {
		for _, v := range s.Methods(option) {
			if !slices.Contains(names, v.Text) {
				b.Report.At(v.Pos, "%s: interface %s has no method %q%s", option, w.Name, v.Text, directive.Suggest(v.Text, names))
			}
		}
	}
}

// checkNumbers reports further lines that do not say how many calls they admit: the number
// of the first line is not theirs.
func (b *Builder) checkNumbers(lines []*directive.Settings) {
	for i, s := range lines {
		if i > 0 && !s.Has("max") && !s.IsEmpty() {
			b.Report.At(s.Pos, "a further limit without a max, which would admit %d calls: write its max or rate, or all options on one line if it is one limit", directive.DefaultMax)
		}
	}
}

// checkApplied reports limits of the whole interface that apply to none of its methods.
func (b *Builder) checkApplied(w *Wrapper, shared []*Rule) {
	for _, r := range shared {
		if !r.applies {
			b.Report.At(r.Pos, "this limit applies to no method of %s, all are left out: remove it, or one of except, only, replace and %soff", w.Name, directive.Prefix)
		}
	}
}

// checkPrefixes refuses two limits of one method that would share a key.
func (b *Builder) checkPrefixes(m *Method, rules []*Rule) {
	for i, r := range rules {
		for _, before := range rules[:i] {
			if r.Prefix == before.Prefix {
				b.Report.At(r.Place("prefix"), "two limits of %s have the prefix %q and would count in one Redis key: give each its own", m.Name, r.Prefix)
			}
		}
	}
}

// replaced returns the limits of the whole interface that those of a method take the
// place of. It reports a limit that replaces none.
func (b *Builder) replaced(w *Wrapper, m *Method, own []*directive.Directive, shared []*Rule) map[*Rule]bool {
	gone := map[*Rule]bool{}
	for _, s := range settingsIn(own) {
		name := s.Replaces()
		if name == "" {
			continue
		}
		var names []string
		found := false
		for _, r := range shared {
			if r.LeavesOut(m.Name) {
				continue
			}
			names = append(names, r.Name)
			if name == "all" || name == r.Name {
				gone[r], found = true, true
			}
		}
		if found {
			continue
		}
		if len(names) == 0 {
			b.Report.At(s.Place("replace"), "replace: %s has no limit of its interface that could be replaced: remove the option", m.Name).Mark(name)
		} else {
			near := nearest.Name(name, names)
			b.Report.At(s.Place("replace"), "replace: the interface's limits on %s are %s: write the name of one, or all", m.Name, strings.Join(names, ", ")).Mark(name).ReplaceBy(near)
		}
	}
	return gone
}
