package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/model"
)

// An admission is the body of a method that has limits.
type admission struct {
	*emitter
	method  *model.Method
	names   *nameSet
	limiter *jen.Statement
	zeros   []string // of the results but the error
	next    *jen.Statement
	code    []jen.Code
	// applies names the variable that says whether a limit applies, if there is
	// one.
	applies map[*model.Limit]string
	// places says how to write a limit that is not a mere argument.
	places   map[*model.Limit]string
	ctx      *jen.Statement // the context of the call
	decision string         // the variable, once the limits are taken
}

// body writes the method: its limits are built and taken all at once before the
// call, and those that adapt to its latency measure it.
func (a *admission) body() []jen.Code {
	if a.method.Settles() {
		return a.settledBody()
	}
	condition := a.limiter.Clone().Dot("Enabled").Call()
	when, limits := a.limits()
	if when != nil {
		condition.Op("&&").Op(parenthesise(when.Node, a.exprString(when, a.names)))
	}
	a.take(limits)
	return append([]jen.Code{jen.If(condition).Block(a.code...)}, a.passOn()...)
}

// passOn returns the call of the wrapped method and of nothing after it.
func (a *admission) passOn() []jen.Code {
	if len(a.method.Results) == 0 {
		return []jen.Code{a.next}
	}
	return []jen.Code{jen.Return(a.next)}
}

// limits builds the method's limits and returns them as arguments, with the
// condition of the only one if that is left to the caller.
func (a *admission) limits() (when *expr.Expr, args []jen.Code) {
	all := a.method.Limits
	conditional := slices.ContainsFunc(all, func(l *model.Limit) bool { return l.When != nil })
	simple := len(all) == 1 && (!conditional || len(all[0].When.Guards) == 0)
	if conditional && !simple {
		return nil, []jen.Code{jen.Id(a.conditional()).Op("...")}
	}
	named := len(all) > 1 || a.method.Settles() || a.method.Holds()
	for _, l := range all {
		args = append(args, a.limit(l, named))
	}
	return all[0].When, args
}

// take adds what asks the limiter and returns if it refuses.
func (a *admission) take(limits []jen.Code) {
	m := a.method
	a.ctx = a.context()
	take := a.limiter.Clone().Dot("Take").Call(append([]jen.Code{a.ctx}, limits...)...)
	decision := "_"
	if m.Settles() || m.Holds() {
		decision = a.names.pick("decision")
		a.decision = decision
	}
	if a.names.params[m.Refusal] == "" {
		a.names.params[m.Refusal] = a.names.pick("err")
	}
	err := a.names.params[m.Refusal]
	taken := jen.List(jen.Id(decision), jen.Id(err)).Op(":=").Add(take)
	if decision == "_" {
		a.add(jen.If(taken, jen.Id(err).Op("!=").Nil()).Block(a.refused()...))
	} else {
		a.add(taken)
		a.add(jen.If(jen.Id(err).Op("!=").Nil()).Block(a.refused()...))
	}
	if m.Holds() {
		a.add(a.giveBack(limits))
	}
	a.code = append(a.code, a.measures()...)
}

// add appends a statement.
func (a *admission) add(c jen.Code) { a.code = append(a.code, c) }

// conditional builds the limits whose conditions hold and returns the name of
// their slice.
func (a *admission) conditional() string {
	limits := a.names.pick("limits")
	a.add(jen.Id(limits).Op(":=").Id("make").Call(jen.Index().Add(a.runtime("Limit")), jen.Lit(0), jen.Lit(len(a.method.Limits))))
	sure := true // that all limits so far apply
	for i, l := range a.method.Limits {
		if l.Settles() {
			a.place(l, limits, i, sure)
		}
		sure = sure && l.When == nil
		outer := a.code
		a.code = nil
		appendLimit := func() {
			limit := a.limit(l, false)
			a.add(jen.Id(limits).Op("=").Append(jen.Id(limits), limit))
		}
		switch {
		case l.When == nil:
			appendLimit()
			a.code = append(outer, a.code...)
		case len(l.When.Guards) == 0:
			appendLimit()
			condition := jen.Op(a.exprString(l.When, a.names))
			if l.Rule.Measured() || l.Settles() {
				a.applies[l] = a.names.pick("applies")
				outer = append(outer, jen.Id(a.applies[l]).Op(":=").Add(condition))
				condition = jen.Id(a.applies[l])
			}
			a.code = append(outer, jen.If(condition).Block(a.code...))
		default:
			// A condition that cannot be evaluated lets the limit apply, with
			// a key that leaves the decision to the failure policy.
			applies, key := a.names.pick("applies"), a.names.pick("key")
			a.applies[l] = applies
			outer = append(outer,
				jen.Id(key).Op(":=").Add(a.runtime("NewKey")).Call(),
				jen.Id(applies).Op(":=").True(),
				a.guarded(l.When, key, jen.Id(applies).Op("=").Op(a.exprString(l.When, a.names))),
			)
			a.keyParts(l, key, nil)
			a.add(jen.Id(limits).Op("=").Append(jen.Id(limits), a.numbers(l, key)))
			a.code = append(outer, jen.If(jen.Id(applies)).Block(a.code...))
		}
	}
	return limits
}

// limit builds one limit and returns the expression for it: a variable if it
// is to be named or is long.
func (a *admission) limit(l *model.Limit, named bool) jen.Code {
	key := ""
	guardedNumber := l.Cost != nil && len(l.Cost.Guards) > 0 || l.Max != nil && len(l.Max.Guards) > 0
	if len(l.Parts) > 0 || guardedNumber {
		key = a.names.pick("key")
		a.keyParts(l, key, a.runtime("NewKey").Call())
	}
	built := a.numbers(l, key)
	if !named && l.Cost == nil && l.Max == nil {
		return built
	}
	name := a.names.pick("limit")
	if a.places[l] == "" {
		a.places[l] = name
	}
	a.add(jen.Id(name).Op(":=").Add(built))
	return jen.Id(name)
}

// keyParts adds a key's parts; start, if not nil, is the new key they are
// added to. Parts in a row that need no guard are added in one chain.
func (a *admission) keyParts(l *model.Limit, key string, start *jen.Statement) {
	chain := start
	flush := func() {
		switch {
		case chain == nil:
		case start != nil:
			a.add(jen.Id(key).Op(":=").Add(chain))
		default:
			a.add(chain)
		}
		chain, start = nil, nil
	}
	for _, p := range l.Parts {
		value := jen.Op(a.exprString(p.Expr, a.names))
		if p.Convert != "" {
			value = jen.Id(p.Convert).Call(value)
		}
		if len(p.Expr.Guards) > 0 {
			flush()
			a.add(a.guarded(p.Expr, key, jen.Id(key).Dot(p.Add).Call(value)))
			continue
		}
		if chain == nil {
			chain = jen.Id(key)
		}
		chain.Dot(p.Add).Call(value)
	}
	flush()
}

// measures returns what has the limits that apply, and adapt to it, measure the
// call that is let through.
func (a *admission) measures() []jen.Code {
	var code []jen.Code
	for _, l := range a.method.Limits {
		if !l.Rule.Measured() {
			continue
		}
		now := jen.Id(a.imports.name("time")).Dot("Now").Call()
		measure := jen.Defer().Add(a.limiter).Dot("Measure").Call(jen.Id(l.Rule.VarName), now)
		if applies := a.applies[l]; applies != "" {
			measure = jen.If(jen.Id(applies)).Block(measure)
		}
		code = append(code, measure)
	}
	return code
}
