package emit

import (
	"slices"
	"strconv"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/model"
)

// An admission is the body of a method that has limits.
type admission struct {
	*emitter
	method   *model.Method
	names    *nameSet
	limiter  *jen.Statement
	enabled  string   // the condition that the limiter is
	zeros    []string // of the results but the error
	next     *jen.Statement
	limits   []*limit
	code     []jen.Code
	ctx      *jen.Statement // the context of the call
	decision string         // the variable, once the limits are taken
	costs    string         // the variable, if there is one
	meter    string         // the variable, if there is one
	yield    string         // the function that a sequence calls
	typeArgs *jen.Statement // of the wrapper
}

// A limit is one of the method's limits, as the body writes it.
type limit struct {
	*model.Limit
	place   string // where it is kept, if it is not a mere argument
	index   string // which of the call's limits it is
	when    when
	applies string // the variable that says whether it applies, if there is one
}

func (e *emitter) newAdmission(m *model.Method, names *nameSet, limiter string, next *jen.Statement, zeros []string) *admission {
	a := &admission{emitter: e, method: m, names: names, limiter: jen.Op(limiter), enabled: limiter + ".Enabled()", zeros: zeros, next: next}
	for _, l := range m.Limits {
		a.limits = append(a.limits, &limit{Limit: l})
	}
	return a
}

// body writes the method: its limits are built and taken all at once before the
// call, and those that adapt to its latency measure it.
func (a *admission) body() []jen.Code {
	if a.method.Stream != nil {
		return a.meteredBody()
	}
	if a.method.HasEnd() {
		return a.endedBody()
	}
	headers := []header{{condition: condition{text: a.enabled}}}
	if only := a.only(); only != nil {
		only.when = a.when(only.When, false)
		headers = chain(headers, only.when.headers)
	}
	a.take(a.arguments())
	return append(nested(headers, a.code), a.passOn()...)
}

// only returns the limit of a method that has no other. Its condition is one of
// asking the limiter at all.
func (a *admission) only() *limit {
	if len(a.limits) == 1 {
		return a.limits[0]
	}
	return nil
}

// passOn returns the call of the wrapped method and of nothing after it.
func (a *admission) passOn() []jen.Code {
	if len(a.method.Results) == 0 {
		return []jen.Code{a.next}
	}
	return []jen.Code{jen.Return(a.next)}
}

// arguments builds the limits and returns them as arguments.
func (a *admission) arguments() []jen.Code {
	conditional := slices.ContainsFunc(a.limits, func(l *limit) bool { return l.When != nil })
	if conditional && a.only() == nil {
		return []jen.Code{jen.Id(a.slice()).Op("...")}
	}
	var args []jen.Code
	named := a.only() == nil || a.only().Hold != nil
	for i, l := range a.limits {
		l.index = strconv.Itoa(i)
		args = append(args, a.limit(l, named))
	}
	return args
}

// take adds what asks the limiter and returns if it refuses.
func (a *admission) take(limits []jen.Code) {
	m := a.method
	a.ctx = a.context()
	if m.IsSoft() {
		a.add(a.ctx.Clone().Op("=").Add(a.wrapperFunc("WithExceeded")).Call(a.ctx))
	}
	take := a.limiter.Clone().Dot("Take").Call(append([]jen.Code{a.ctx}, limits...)...)
	decision := "_"
	if m.Settles() || m.Holds() || m.AnswersDiffer() || m.Stream != nil {
		decision = a.names.pick("decision")
		a.decision = decision
	}
	if a.names.params[m.Refusal] == "" {
		a.names.params[m.Refusal] = a.names.pick("err")
	}
	err := a.names.params[m.Refusal]
	taken := jen.List(jen.Id(decision), jen.Id(err)).Op(":=").Add(take)
	if !m.HasEnd() && !m.Holds() {
		a.add(jen.If(taken, jen.Id(err).Op("!=").Nil()).Block(a.refused()...))
	} else {
		a.add(taken)
		a.add(jen.If(jen.Id(err).Op("!=").Nil()).Block(a.refused()...))
	}
	if m.Holds() && m.Stream == nil {
		a.giveBack()
	}
	a.add(a.measures()...)
}

// add appends statements.
func (a *admission) add(code ...jen.Code) { a.code = append(a.code, code...) }

// slice builds the limits whose conditions hold and returns the name of their
// slice.
func (a *admission) slice() string {
	limits := a.names.pick("limits")
	a.add(jen.Id(limits).Op(":=").Id("make").Call(jen.Index().Add(a.runtime("Limit")), jen.Lit(0), jen.Lit(len(a.limits))))
	sure := true // that all limits so far apply
	for i, l := range a.limits {
		if l.HasEnd() {
			a.index(l, limits, i, sure)
		}
		sure = sure && l.When == nil
		asked := l.Rule.Measured() || l.HasEnd() // whether it applies, once more
		l.when = a.when(l.When, asked)
		headers := l.when.headers
		if asked && l.When != nil {
			headers = a.variable(l)
		}
		outer := a.code
		a.code = nil
		built := a.limit(l, false)
		a.add(jen.Id(limits).Op("=").Append(jen.Id(limits), built))
		a.code = append(outer, nested(headers, a.code)...)
	}
	return limits
}

// variable puts into a variable whether a limit applies.
func (a *admission) variable(l *limit) []header {
	h := l.when.headers[0]
	if len(h.before) > 0 {
		l.applies = h.text // a variable already
		return l.when.headers
	}
	l.applies = a.names.pick("applies")
	a.add(jen.Id(l.applies).Op(":=").Op(h.String()))
	return []header{{condition: plain(l.applies)}}
}

// limit builds one limit and returns the expression for it: a variable if it
// is to be named or is long.
func (a *admission) limit(l *limit, named bool) jen.Code {
	key := ""
	if len(l.Parts) > 0 || len(l.when.reasons) > 0 || a.canFail(l.Cost) || a.canFail(l.Max) || a.canFail(l.Zone) || a.canFail(l.Anchor) {
		key = a.names.pick("key")
		a.key(l, key)
	}
	built := a.numbers(l, key)
	if !named && len(l.Share) == 0 && l.Cost == nil && l.Max == nil && l.Zone == nil && l.Anchor == nil {
		return built
	}
	name := a.names.pick("limit")
	if l.place == "" {
		l.place = name
	}
	a.add(jen.Id(name).Op(":=").Add(built))
	return jen.Id(name)
}

// canFail reports whether an expression may be impossible to evaluate.
func (a *admission) canFail(x *expr.Expr) bool {
	return x != nil && !expr.CannotFail(x.Lower(expr.Facts{}).Steps)
}

// measures returns what has the limits that apply, and adapt to it, measure the
// call that is let through.
func (a *admission) measures() []jen.Code {
	var code []jen.Code
	for _, l := range a.limits {
		if !l.Rule.Measured() {
			continue
		}
		now := jen.Id(a.imports.name("time")).Dot("Now").Call()
		measure := jen.Defer().Add(a.wrapperFunc("Measure")).Call(a.limiter, jen.Id(l.Rule.VarName), now)
		if l.applies != "" {
			measure = jen.If(jen.Id(l.applies)).Block(measure)
		}
		code = append(code, measure)
	}
	return code
}
