package emit

import (
	"go/types"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/model"
)

// admission writes what stands before the call: the method's limits are built
// and taken all at once, and those that adapt to its latency measure it.
func (e *emitter) admission(m *model.Method, names *nameSet, limiter *jen.Statement, zeros []string) []jen.Code {
	a := &admission{emitter: e, method: m, names: names, applies: map[*model.Limit]string{}}
	condition := limiter.Clone().Dot("Enabled").Call()
	var limits []jen.Code
	conditional := false
	for _, l := range m.Limits {
		conditional = conditional || l.When != nil
	}
	switch only := m.Limits[0]; {
	case !conditional && len(m.Limits) == 1:
		limits = []jen.Code{a.limit(only, false)}
	case !conditional:
		for _, l := range m.Limits {
			limits = append(limits, a.limit(l, true))
		}
	case len(m.Limits) == 1 && len(only.When.Guards) == 0:
		condition.Op("&&").Op(parenthesise(only.When.Node, e.exprString(only.When, names)))
		limits = []jen.Code{a.limit(only, false)}
	default:
		limits = []jen.Code{jen.Id(a.conditional()).Op("...")}
	}
	ctx := a.context()
	err := names.pick("err")
	var results []jen.Code
	for _, zero := range zeros {
		results = append(results, jen.Op(zero))
	}
	take := jen.If(
		jen.List(jen.Id("_"), jen.Id(err)).Op(":=").Add(limiter).Dot("Take").Call(append([]jen.Code{ctx}, limits...)...),
		jen.Id(err).Op("!=").Nil(),
	).Block(jen.Return(append(results, jen.Id(err))...))
	return []jen.Code{jen.If(condition).Block(append(append(a.code, take), a.measures(limiter)...)...)}
}

// An admission is the code that builds the limits of a method.
type admission struct {
	*emitter
	method *model.Method
	names  *nameSet
	code   []jen.Code
	// applies names the variable that says whether a limit applies, if there is
	// one.
	applies map[*model.Limit]string
}

// add appends a statement.
func (a *admission) add(c jen.Code) { a.code = append(a.code, c) }

// conditional builds the limits whose conditions hold and returns the name of
// their slice.
func (a *admission) conditional() string {
	limits := a.names.pick("limits")
	a.add(jen.Id(limits).Op(":=").Id("make").Call(jen.Index().Add(a.runtime("Limit")), jen.Lit(0), jen.Lit(len(a.method.Limits))))
	for _, l := range a.method.Limits {
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
			if l.Rule.Measured() {
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

// numbers returns the limit with its cost and max.
func (a *admission) numbers(l *model.Limit, key string) *jen.Statement {
	arg := jen.Nil()
	if key != "" {
		arg = jen.Id(key)
	}
	cost, maximum := a.number(l.Cost, key, "cost", "1"), a.number(l.Max, key, "maximum", "0")
	built := jen.Id(l.Rule.VarName).Dot("Limit").Call(arg)
	if maximum != nil {
		built.Dot("WithMax").Call(maximum)
	}
	if cost != nil {
		built.Dot("WithCost").Call(cost)
	}
	return built
}

// number returns a cost or max as an int64. One that needs a guard is put
// into a variable first; if it cannot be evaluated the key becomes invalid.
func (a *admission) number(x *expr.Expr, key, name, fallback string) jen.Code {
	if x == nil {
		return nil
	}
	if x.Const != nil {
		return jen.Op(a.constant(x))
	}
	value := jen.Op(a.exprString(x, a.names))
	if b, ok := types.Unalias(x.Type).(*types.Basic); !ok || b.Kind() != types.Int64 {
		value = jen.Id("int64").Call(value)
	}
	if len(x.Guards) == 0 {
		return value
	}
	local := a.names.pick(name)
	a.add(jen.Id(local).Op(":=").Id("int64").Call(jen.Op(fallback)))
	a.add(a.guarded(x, key, jen.Id(local).Op("=").Add(value)))
	return jen.Id(local)
}

// measures returns what has the limits that apply, and adapt to it, measure the
// call that is let through.
func (a *admission) measures(limiter *jen.Statement) []jen.Code {
	var code []jen.Code
	for _, l := range a.method.Limits {
		if !l.Rule.Measured() {
			continue
		}
		now := jen.Id(a.imports.name("time")).Dot("Now").Call()
		measure := jen.Defer().Add(limiter).Dot("Measure").Call(jen.Id(l.Rule.VarName), now)
		if applies := a.applies[l]; applies != "" {
			measure = jen.If(jen.Id(applies)).Block(measure)
		}
		code = append(code, measure)
	}
	return code
}
