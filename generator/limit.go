package generator

import (
	"go/constant"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A limit is one rule variable to be written.
type limit struct {
	rule    *rule
	varName string
	name    string // in metrics
	prefix  string
	source  string       // file and method, as in "employee.go: EmployeeService.GetByID"
	max     *checkedExpr // a constant, or nil for the default; meaningless if dynamic
	dynamic bool         // max depends on the call
	keyText string       // as in the directive, for the doc comment
}

// measured reports whether the wrapper measures how long calls take.
func (l *limit) measured() bool { return slices.Contains(l.rule.adaptive, latency) }

// A use is a limit applied to a method.
type use struct {
	limit *limit
	parts []*keyPart
	cost  *checkedExpr // nil: 1
	max   *checkedExpr // nil unless it depends on the call
	when  *checkedExpr // nil: always
}

// applyLimits makes the limits of an interface and applies them to its
// methods: those of the whole interface first, then the method's own.
func (r *run) applyLimits(w *wrapper, scopes func(*wrapper, *method) *exprScope, newVar func(string) string) {
	base := w.pkgName + "." + w.name
	shared := rules(w.decl.own)
	varBase := lowerFirst(w.name)
	var sharedLimits []*limit
	for i, ru := range shared {
		l := r.newLimit(ru, base, i)
		l.varName = newVar(varBase + "Limit" + number(i))
		sharedLimits = append(sharedLimits, l)
		r.checkExcept(w, ru)
	}
	w.limits = append(w.limits, sharedLimits...)

	for _, d := range w.decl.own {
		if d.off {
			r.at(d.pos, "off on an interface has no effect: remove it, and the directives it was to turn off")
		}
	}
	for _, m := range w.methods {
		own := w.decl.methods[m.name]
		if !m.explicit {
			own = nil
		}
		off := slices.IndexFunc(own, func(d *directive) bool { return d.off })
		switch {
		case off >= 0 && len(own) > 1:
			r.at(own[off].pos, "off beside other directives of %s: remove it or them", m.name)
		case off >= 0 && len(shared) == 0:
			r.at(own[off].pos, "off has no effect: %s has no directive on the whole interface, so %s is not limited anyway; remove it", w.name, m.name)
		}
		var limits []*limit
		for _, l := range sharedLimits {
			if off >= 0 || slices.ContainsFunc(l.rule.except, func(v value) bool { return v.text == m.name }) {
				continue
			}
			if !m.returnsError() {
				r.at(l.rule.pos, "method %s of %s cannot be limited, its last result is not an error: add except=%s, or %soff above the method", m.name, w.name, m.name, directivePrefix)
				continue
			}
			limits = append(limits, l)
		}
		for i, ru := range rules(own) {
			if !m.returnsError() {
				r.at(ru.pos, "a limited method must return an error as its last result: add one to %s, or remove the directive", m.name)
			}
			l := r.newLimit(ru, base+"."+m.name, i)
			l.varName = newVar(varBase + upperFirst(m.name) + "Limit" + number(i))
			w.limits = append(w.limits, l)
			limits = append(limits, l)
		}
		r.checkPrefixes(m, limits)
		if len(limits) > maxLimits {
			r.at(limits[maxLimits].rule.pos, "%s has %d limits, the most is %d: remove some", m.name, len(limits), maxLimits)
		}
		for _, l := range limits {
			m.uses = append(m.uses, r.newUse(w, m, l, scopes(w, m)))
		}
	}
}

// rules returns the rules of directives, leaving out //ratelimit:off.
func rules(ds []*directive) []*rule {
	var rules []*rule
	for _, d := range ds {
		if d.rule != nil {
			rules = append(rules, d.rule)
		}
	}
	return rules
}

// number is what the names of the second and further limits end in.
func number(i int) string {
	if i == 0 {
		return ""
	}
	return strconv.Itoa(i + 1)
}

// newLimit names the i-th rule of a method, or of the whole interface. Its
// source has no line number: a line inserted above a method changes no limit,
// and must not make the generated file stale.
func (r *run) newLimit(ru *rule, name string, i int) *limit {
	_, declared, _ := strings.Cut(name, ".")
	source := filepath.Base(r.fset.PositionFor(ru.pos, false).Filename) + ": " + declared
	if i > 0 {
		name += "#" + number(i)
	}
	l := &limit{rule: ru, name: name, prefix: "rate_limit:" + name + ":", source: source}
	if ru.name != "" {
		l.name = ru.name
	}
	if ru.prefix != "" {
		l.prefix = ru.prefix
	}
	var keys []string
	for _, part := range ru.key {
		keys = append(keys, part.text)
	}
	l.keyText = strings.Join(keys, ", ")
	return l
}

func (r *run) checkExcept(w *wrapper, ru *rule) {
	var names []string
	for _, m := range w.methods {
		names = append(names, m.name)
	}
	for _, v := range ru.except {
		if !slices.Contains(names, v.text) {
			r.at(v.pos, "except: interface %s has no method %q%s", w.name, v.text, suggest(v.text, names))
		}
	}
}

// checkPrefixes refuses two limits of one method that would share a key.
func (r *run) checkPrefixes(m *method, limits []*limit) {
	for i, l := range limits {
		for _, before := range limits[:i] {
			if l.prefix == before.prefix {
				r.at(l.rule.prefixPos, "two limits of %s have the prefix %q and would count in one Redis key: give each its own", m.name, l.prefix)
			}
		}
	}
}

// newUse checks a limit's expressions against the parameters of a method.
func (r *run) newUse(w *wrapper, m *method, l *limit, scope *exprScope) *use {
	u := &use{limit: l}
	for _, v := range l.rule.key {
		if e := scope.check("key", v, m); e != nil {
			u.parts = append(u.parts, r.newKeyPart(e))
		}
	}
	bound := mostOf(l.rule.algorithm)
	most := bound // of the cost
	if v := l.rule.max; v != nil {
		if e := scope.check("max", *v, m); e != nil && r.checkInteger(e) {
			switch n, exact := int64Of(e.con); {
			case e.con == nil:
				l.dynamic, u.max = true, e
			case !exact || n < 1 || n > bound:
				r.at(v.pos, "max: %s is not between 1 and %d", e.con, bound)
			default:
				l.max, most = e, n
			}
		}
	} else {
		most = defaultMax
	}
	if l.rule.burst > 0 {
		most = l.rule.burst
	}
	if v := l.rule.cost; v != nil {
		if e := scope.check("cost", *v, m); e != nil && r.checkInteger(e) {
			switch n, exact := int64Of(e.con); {
			case e.con == nil:
				u.cost = e
			case constant.Sign(e.con) == 0:
				r.at(v.pos, "cost: a cost of 0 charges nothing: remove the limit")
			case !exact || n < 1 || n > most:
				r.at(v.pos, "cost: %s is not between 1 and %d, the most that the limit admits at once", e.con, most)
			case n != 1:
				u.cost = e
			}
		}
	}
	if v := l.rule.when; v != nil {
		if e := scope.check("when", *v, m); e != nil && r.checkBoolean(e) {
			u.when = e
		}
	}
	return u
}

func int64Of(v constant.Value) (int64, bool) {
	if v == nil {
		return 0, false
	}
	return constant.Int64Val(constant.ToInt(v))
}
