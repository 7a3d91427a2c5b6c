package generator

import (
	"go/ast"
	"go/printer"
	"go/token"
	"go/types"
	"strings"

	"github.com/dave/jennifer/jen"
)

// admission writes what stands before the call: the method's limits are built
// and taken all at once, and those that adapt to its latency measure it.
func (e *emitter) admission(m *method, names *nameSet, limiter *jen.Statement, zeros []string) []jen.Code {
	a := &admission{emitter: e, method: m, names: names, applies: map[*use]string{}}
	condition := limiter.Clone().Dot("Enabled").Call()
	var limits []jen.Code
	conditional := false
	for _, u := range m.uses {
		conditional = conditional || u.when != nil
	}
	switch only := m.uses[0]; {
	case !conditional && len(m.uses) == 1:
		limits = []jen.Code{a.limit(only, false)}
	case !conditional:
		for _, u := range m.uses {
			limits = append(limits, a.limit(u, true))
		}
	case len(m.uses) == 1 && len(only.when.guards) == 0:
		condition.Op("&&").Op(parenthesise(only.when.node, e.exprString(only.when, names)))
		limits = []jen.Code{a.limit(only, false)}
	default:
		limits = []jen.Code{jen.Id(a.conditional()).Op("...")}
	}
	ctx := jen.Id(e.imports.name("context")).Dot("Background").Call()
	if p := m.context(); p != nil {
		ctx = jen.Id(names.params[p])
	}
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
	method *method
	names  *nameSet
	code   []jen.Code
	// applies names the variable that says whether a limit applies, if there is
	// one.
	applies map[*use]string
}

// add appends a statement.
func (a *admission) add(c jen.Code) { a.code = append(a.code, c) }

// conditional builds the limits whose conditions hold and returns the name of
// their slice.
func (a *admission) conditional() string {
	limits := a.names.pick("limits")
	a.add(jen.Id(limits).Op(":=").Id("make").Call(jen.Index().Add(a.runtime("Limit")), jen.Lit(0), jen.Lit(len(a.method.uses))))
	for _, u := range a.method.uses {
		outer := a.code
		a.code = nil
		appendLimit := func() {
			limit := a.limit(u, false)
			a.add(jen.Id(limits).Op("=").Append(jen.Id(limits), limit))
		}
		switch {
		case u.when == nil:
			appendLimit()
			a.code = append(outer, a.code...)
		case len(u.when.guards) == 0:
			appendLimit()
			condition := jen.Op(a.exprString(u.when, a.names))
			if u.limit.measured() {
				a.applies[u] = a.names.pick("applies")
				outer = append(outer, jen.Id(a.applies[u]).Op(":=").Add(condition))
				condition = jen.Id(a.applies[u])
			}
			a.code = append(outer, jen.If(condition).Block(a.code...))
		default:
			// A condition that cannot be evaluated lets the limit apply, with
			// a key that leaves the decision to the failure policy.
			applies, key := a.names.pick("applies"), a.names.pick("key")
			a.applies[u] = applies
			outer = append(outer,
				jen.Id(key).Op(":=").Add(a.runtime("NewKey")).Call(),
				jen.Id(applies).Op(":=").True(),
				a.guarded(u.when, key, jen.Id(applies).Op("=").Op(a.exprString(u.when, a.names))),
			)
			a.keyParts(u, key, nil)
			a.add(jen.Id(limits).Op("=").Append(jen.Id(limits), a.numbers(u, key)))
			a.code = append(outer, jen.If(jen.Id(applies)).Block(a.code...))
		}
	}
	return limits
}

// limit builds one limit and returns the expression for it: a variable if it
// is to be named or is long.
func (a *admission) limit(u *use, named bool) jen.Code {
	key := ""
	guardedNumber := u.cost != nil && len(u.cost.guards) > 0 || u.max != nil && len(u.max.guards) > 0
	if len(u.parts) > 0 || guardedNumber {
		key = a.names.pick("key")
		a.keyParts(u, key, a.runtime("NewKey").Call())
	}
	built := a.numbers(u, key)
	if !named && u.cost == nil && u.max == nil {
		return built
	}
	name := a.names.pick("limit")
	a.add(jen.Id(name).Op(":=").Add(built))
	return jen.Id(name)
}

// keyParts adds a key's parts; start, if not nil, is the new key they are
// added to. Parts in a row that need no guard are added in one chain.
func (a *admission) keyParts(u *use, key string, start *jen.Statement) {
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
	for _, p := range u.parts {
		value := jen.Op(a.exprString(p.expr, a.names))
		if p.convert != "" {
			value = jen.Id(p.convert).Call(value)
		}
		if len(p.expr.guards) > 0 {
			flush()
			a.add(a.guarded(p.expr, key, jen.Id(key).Dot(p.add).Call(value)))
			continue
		}
		if chain == nil {
			chain = jen.Id(key)
		}
		chain.Dot(p.add).Call(value)
	}
	flush()
}

// numbers returns the limit with its cost and max.
func (a *admission) numbers(u *use, key string) *jen.Statement {
	arg := jen.Nil()
	if key != "" {
		arg = jen.Id(key)
	}
	cost, maximum := a.number(u.cost, key, "cost", "1"), a.number(u.max, key, "maximum", "0")
	l := jen.Id(u.limit.varName).Dot("Limit").Call(arg)
	if maximum != nil {
		l.Dot("WithMax").Call(maximum)
	}
	if cost != nil {
		l.Dot("WithCost").Call(cost)
	}
	return l
}

// number returns a cost or max as an int64. One that needs a guard is put
// into a variable first; if it cannot be evaluated the key becomes invalid.
func (a *admission) number(x *checkedExpr, key, name, fallback string) jen.Code {
	if x == nil {
		return nil
	}
	if x.con != nil {
		return jen.Op(a.constant(x))
	}
	value := jen.Op(a.exprString(x, a.names))
	if b, ok := types.Unalias(x.typ).(*types.Basic); !ok || b.Kind() != types.Int64 {
		value = jen.Id("int64").Call(value)
	}
	if len(x.guards) == 0 {
		return value
	}
	local := a.names.pick(name)
	a.add(jen.Id(local).Op(":=").Id("int64").Call(jen.Op(fallback)))
	a.add(a.guarded(x, key, jen.Id(local).Op("=").Add(value)))
	return jen.Id(local)
}

// guarded writes do, unless a guard of x holds: then the key is invalid.
func (a *admission) guarded(x *checkedExpr, key string, do jen.Code) jen.Code {
	s := jen.Null()
	for _, g := range x.guards {
		s.If(a.guardCondition(g, x)...).Block(
			jen.Id(key).Dot("AddInvalid").Call(jen.Lit(x.reason(g))),
		).Else()
	}
	return s.Block(do)
}

// reason says for the log why a key is invalid.
func (x *checkedExpr) reason(g *guard) string {
	if x.option != "key" {
		return x.option + "=" + x.src.text + ": " + g.reason
	}
	if strings.HasPrefix(g.reason, x.src.text+" ") {
		return g.reason
	}
	return x.src.text + ": " + g.reason
}

func (a *admission) guardCondition(g *guard, x *checkedExpr) []jen.Code {
	subject := a.nodeString(g.subject, x, a.names)
	var init []jen.Code
	if g.bind != nil {
		init = []jen.Code{jen.Id(a.names.binds[g.bind]).Op(":=").Op(subject)}
		subject = a.names.binds[g.bind]
	}
	if isTypeParam(x.info.Types[g.subject].Type) {
		subject = "any(" + subject + ")" // else it cannot be compared with nil
	}
	if g.index == "" {
		return append(init, jen.Op(subject).Op("==").Nil())
	}
	return append(init, jen.Id("len").Call(jen.Op(subject)).Op("<=").Op(g.index))
}

// exprString writes an expression with the names of the generated file.
func (e *emitter) exprString(x *checkedExpr, names *nameSet) string {
	for _, g := range x.guards {
		if g.bind != nil && names.binds[g.bind] == "" {
			names.binds[g.bind] = names.pick("v")
		}
	}
	return e.nodeString(x.node, x, names)
}

// nodeString writes a part of an expression.
func (e *emitter) nodeString(n ast.Expr, x *checkedExpr, names *nameSet) string {
	old := map[*ast.Ident]string{}
	rename := func(id *ast.Ident, name string) {
		if _, done := old[id]; !done {
			old[id] = id.Name
		}
		id.Name = name
	}
	for id, p := range x.params {
		rename(id, names.params[p])
	}
	for _, g := range x.guards {
		if g.bind != nil {
			rename(g.bind, names.binds[g.bind])
		}
	}
	x.eachOutside(func(id *ast.Ident, obj types.Object) {
		if p, ok := obj.(*types.PkgName); ok {
			rename(id, e.imports.name(p.Imported().Path()))
		} else if isPackageLevel(obj) && obj.Pkg() != e.imports.own {
			rename(id, e.imports.name(obj.Pkg().Path())+"."+obj.Name()) // a dot import
		}
	})
	var text strings.Builder
	printer.Fprint(&text, token.NewFileSet(), n)
	for id, name := range old {
		id.Name = name
	}
	return text.String()
}

// parenthesise puts parentheses around what binds weaker than &&.
func parenthesise(n ast.Expr, text string) string {
	if b, ok := n.(*ast.BinaryExpr); ok && b.Op == token.LOR {
		return "(" + text + ")"
	}
	return text
}
