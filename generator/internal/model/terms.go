package model

import (
	"cmp"
	"go/constant"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/internal/algorithm"
)

// checkTerms reports rules that have other terms than one before and start their keys as that
// does, so that neither would hold. It warns of those that have its name, which overrides and
// metrics go by: they may be of other programs.
func (b *Builder) checkTerms(files []*File) {
	started, named := map[string]*Rule{}, map[string]*Rule{}
	for _, r := range b.sortedRules(files) {
		if before := first(started, r.Prefix, r); !b.agree(r, before) {
			b.reportTerms(b.Report.At, r, before, "prefix", r.Prefix, "they would not be one limit; give each its own prefix and name, or both the same terms")
		} else if b.isClash(r, before) {
			other := b.Report.Position(before.Pos)
			b.Report.At(r.Pos, "prefix %q is also that of %s:%d, in another package %s, so they would count together: give each its own prefix and name, or both the same prefix= if that is meant",
				r.Prefix, other.Filename, other.Line, r.pkgName())
		} else if before := first(named, r.Name, r); !b.agree(r, before) {
			warn := func(pos token.Pos, format string, args ...any) *diag.Diagnostic {
				return b.Report.Warn(diag.SharedName, pos, format, args...)
			}
			b.reportTerms(warn, r, before, "name", r.Name, "a program that has both does not start, since overrides and metrics could not tell them apart; give each its own name")
		}
	}
}

// sortedRules returns all rules of files by their place.
func (b *Builder) sortedRules(files []*File) []*Rule {
	var rules []*Rule
	for _, f := range files {
		for _, w := range f.Wrappers {
			rules = append(rules, w.Rules...)
		}
	}
	slices.SortStableFunc(rules, func(x, y *Rule) int {
		p, q := b.Report.Position(x.Pos), b.Report.Position(y.Pos)
		return cmp.Or(strings.Compare(p.Filename, q.Filename), cmp.Compare(p.Line, q.Line))
	})
	return rules
}

// isClash reports whether two rules of different packages start their keys alike because of
// the names of these, and not because anybody says so. No program has two packages main.
func (b *Builder) isClash(r, before *Rule) bool {
	dir := func(r *Rule) string { return filepath.Dir(b.Report.Position(r.Pos).Filename) }
	return r.isPrefixDefault() && before.isPrefixDefault() && dir(r) != dir(before) && r.pkgName() != "main"
}

func (r *Rule) isPrefixDefault() bool { return !r.Has("prefix") && r.Policy() == nil }

func (r *Rule) pkgName() string {
	name, _, _ := strings.Cut(r.Declared, ".")
	return name
}

// first returns the first rule that has something.
func first(rules map[string]*Rule, text string, r *Rule) *Rule {
	if rules[text] == nil {
		rules[text] = r
	}
	return rules[text]
}

func (b *Builder) agree(r, before *Rule) bool {
	option, _, _ := r.difference(before)
	return option == ""
}

// reportTerms reports that a rule has an option in common with one before, and not their terms.
func (b *Builder) reportTerms(report diag.Func, r, before *Rule, option, value, why string) {
	differs, here, there := r.difference(before)
	other := b.Report.Position(before.Pos)
	given := ""
	if r.Has(option) {
		given = value
	}
	report(r.Place(option), "%s %q is also that of %s:%d, whose %s is %s and this one's is %s: %s",
		option, value, other.Filename, other.Line, differs, there, here, why).Mark(given)
}

// difference returns an option in which two rules differ that have other terms, and how.
func (r *Rule) difference(o *Rule) (option, here, there string) {
	const none = "not given"
	mine, others := r.terms(), o.terms()
	for i, t := range mine {
		if t.Value != others[i].Value {
			return t.Name, cmp.Or(t.Value, none), cmp.Or(others[i].Value, none)
		}
	}
	return "", "", ""
}

// terms returns what rules have in common that count together: all that says how much is
// admitted, and how it is counted. What depends on the call may be anything.
func (r *Rule) terms() []directive.Term {
	const perCall = "that of each call"
	terms := r.Settings.Terms()
	value := func(name string) *string {
		return &terms[slices.IndexFunc(terms, func(t directive.Term) bool { return t.Name == name })].Value
	}
	*value("window") = r.Per()
	if r.Dynamic {
		*value("max") = perCall
	} else if r.Max != nil {
		*value("max") = constant.ToInt(r.Max.Const).ExactString()
	}
	for _, name := range [...]string{"tz", "anchor"} {
		if r.Expr(name) != nil {
			*value(name) = perCall
		}
	}
	if r.Expr("hold") != nil {
		*value("hold") = "given"
	}
	row, burst := r.Row(), value("burst")
	if r.IsQueue() {
		*value("algorithm") += " with a wait"
	} else if row.Is(algorithm.Drains) {
		*burst = cmp.Or(*burst, *value("max"))
	}
	if row.Takes("buckets") {
		*value("buckets") = cmp.Or(*value("buckets"), "60")
	}
	if r.Has("share") {
		*value("headroom") = cmp.Or(*value("headroom"), "a quarter of the burst")
	}
	*value("debt") = cmp.Or(*value("debt"), r.Plain().Debt)
	if *value("ledger") != "" { // which bills a key by the name of its rule
		terms = append(terms, directive.Term{Name: "name", Value: r.Name})
	}
	return terms
}
