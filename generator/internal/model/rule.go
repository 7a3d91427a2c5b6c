package model

import (
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
)

// A Rule is a rule as its directive declares it, with the names that
// it has in the program: one variable to be written.
type Rule struct {
	*directive.Settings
	VarName string
	Name    string     // in errors, logs and metrics
	Prefix  string     // of the Redis key
	Source  string     // file and method: "employee.go: EmployeeService.GetByID"
	Max     *expr.Expr // a constant, or nil for the default; meaningless if dynamic
	Dynamic bool       // the max depends on the call
}

// KeyText returns the key as it is written in the directive.
func (r *Rule) KeyText() string {
	var parts []string
	for _, part := range r.Key() {
		parts = append(parts, part.Text)
	}
	return strings.Join(parts, ", ")
}

// excepts reports whether the rule of a whole interface leaves a method out.
func (r *Rule) excepts(m *Method) bool {
	return slices.ContainsFunc(r.Except(), func(v directive.Value) bool { return v.Text == m.Name })
}

func (b *Builder) checkExcept(w *Wrapper, s *directive.Settings) {
	var names []string
	for _, m := range w.Methods {
		names = append(names, m.Name)
	}
	for _, v := range s.Except() {
		if !slices.Contains(names, v.Text) {
			b.Report.At(v.Pos, "except: interface %s has no method %q%s", w.Name, v.Text, directive.Suggest(v.Text, names))
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
