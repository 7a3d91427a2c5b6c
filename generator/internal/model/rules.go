package model

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/naming"
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

// applyLimits makes the rules of an interface and the limits on its methods:
// those of the whole interface first, then the method's own.
func (b *Builder) applyLimits(w *Wrapper, scopes func(*Wrapper, *Method) *expr.Scope, newVar func(string) string) {
	base := w.pkgName + "." + w.Name
	varBase := naming.LowerFirst(w.Name)
	shared := settingsIn(w.Decl.Own)
	for i, s := range shared {
		r := b.newRule(s, base, i)
		r.VarName = newVar(varBase + "Limit" + number(i))
		w.Rules = append(w.Rules, r)
		b.checkExcept(w, s)
	}
	sharedRules := slices.Clone(w.Rules)
	for _, d := range w.Decl.Own {
		if d.Off {
			b.Report.At(d.Pos, "off on an interface has no effect: remove it, and the directives it was to turn off")
		}
	}
	for _, m := range w.Methods {
		var own []*directive.Directive
		if m.explicit {
			own = w.Decl.Methods[m.Name]
		}
		rules := b.sharedBy(w, m, own, sharedRules)
		for i, s := range settingsIn(own) {
			if !m.returnsError() {
				b.Report.At(s.Pos, "a limited method must return an error as its last result: add one to %s, or remove the directive", m.Name)
			}
			r := b.newRule(s, base+"."+m.Name, i)
			r.VarName = newVar(varBase + naming.UpperFirst(m.Name) + "Limit" + number(i))
			w.Rules = append(w.Rules, r)
			rules = append(rules, r)
		}
		b.checkPrefixes(m, rules)
		if len(rules) > directive.MaxLimits {
			b.Report.At(rules[directive.MaxLimits].Pos, "%s has %d limits, the most is %d: remove some", m.Name, len(rules), directive.MaxLimits)
		}
		for _, r := range rules {
			m.Limits = append(m.Limits, b.newLimit(m, r, scopes(w, m)))
		}
	}
}

// sharedBy returns the rules of the whole interface that apply to a method with
// these directives of its own.
func (b *Builder) sharedBy(w *Wrapper, m *Method, own []*directive.Directive, shared []*Rule) []*Rule {
	off := slices.IndexFunc(own, func(d *directive.Directive) bool { return d.Off })
	switch {
	case off >= 0 && len(own) > 1:
		b.Report.At(own[off].Pos, "off beside other directives of %s: remove it or them", m.Name)
	case off >= 0 && len(shared) == 0:
		b.Report.At(own[off].Pos, "off has no effect: %s has no directive on the whole interface, so %s is not limited anyway; remove it", w.Name, m.Name)
	}
	var rules []*Rule
	for _, r := range shared {
		if off >= 0 || slices.ContainsFunc(r.Except(), func(v directive.Value) bool { return v.Text == m.Name }) {
			continue
		}
		if !m.returnsError() {
			b.Report.At(r.Pos, "method %s of %s cannot be limited, its last result is not an error: add except=%s, or %soff above the method", m.Name, w.Name, m.Name, directive.Prefix)
			continue
		}
		rules = append(rules, r)
	}
	return rules
}

// settingsIn returns the settings of directives, leaving out //ratelimit:off.
func settingsIn(ds []*directive.Directive) []*directive.Settings {
	var all []*directive.Settings
	for _, d := range ds {
		if d.Settings != nil {
			all = append(all, d.Settings)
		}
	}
	return all
}

// number is what the names of the second and further limits end in.
func number(i int) string {
	if i == 0 {
		return ""
	}
	return strconv.Itoa(i + 1)
}

// newRule names the i-th rule of a method, or of the whole interface. Its
// source has no line number: a line inserted above a method changes no limit,
// and must not make the generated file stale.
func (b *Builder) newRule(s *directive.Settings, name string, i int) *Rule {
	_, declared, _ := strings.Cut(name, ".")
	file := filepath.Base(b.Report.Fset.PositionFor(s.Pos, false).Filename)
	if i > 0 {
		name += "#" + number(i)
	}
	r := &Rule{Settings: s, Name: name, Prefix: "rate_limit:" + name + ":", Source: file + ": " + declared}
	if given := s.Name(); given != "" {
		r.Name = given
	}
	if given := s.Prefix(); given != "" {
		r.Prefix = given
	}
	return r
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
