package emit

import (
	"go/ast"
	"go/printer"
	"go/token"
	"go/types"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/gotypes"
)

// guarded writes do, unless a guard of x holds: then the key is invalid.
func (a *admission) guarded(x *expr.Expr, key string, do jen.Code) jen.Code {
	s := jen.Null()
	for _, g := range x.Guards {
		s.If(a.guardCondition(g, x)...).Block(
			jen.Id(key).Dot("AddInvalid").Call(jen.Lit(reasonOf(x, g))),
		).Else()
	}
	return s.Block(do)
}

// reasonOf says for the log why a key is invalid.
func reasonOf(x *expr.Expr, g *expr.Guard) string {
	if x.Option != "key" {
		return x.Option + "=" + x.Source.Text + ": " + g.Reason
	}
	if strings.HasPrefix(g.Reason, x.Source.Text+" ") {
		return g.Reason
	}
	return x.Source.Text + ": " + g.Reason
}

// guardCondition returns the condition of an if statement, whose variable it may
// declare, under which a guard of x holds.
func (a *admission) guardCondition(g *expr.Guard, x *expr.Expr) []jen.Code {
	init, subject := a.guardSubject(g, x)
	if g.Index == "" {
		return append(init, jen.Op(subject).Op("==").Nil())
	}
	return append(init, jen.Id("len").Call(jen.Op(subject)).Op("<=").Op(g.Index))
}

// guardPassed is like guardCondition for a guard that does not hold.
func (a *admission) guardPassed(g *expr.Guard, x *expr.Expr) []jen.Code {
	init, subject := a.guardSubject(g, x)
	if g.Index == "" {
		return append(init, jen.Op(subject).Op("!=").Nil())
	}
	return append(init, jen.Id("len").Call(jen.Op(subject)).Op(">").Op(g.Index))
}

func (a *admission) guardSubject(g *expr.Guard, x *expr.Expr) (init []jen.Code, subject string) {
	subject = a.nodeString(g.Subject, x, a.names)
	if g.Bind != nil {
		init = []jen.Code{jen.Id(a.names.binds[g.Bind]).Op(":=").Op(subject)}
		subject = a.names.binds[g.Bind]
	}
	if gotypes.IsTypeParam(x.Info.Types[g.Subject].Type) {
		subject = "any(" + subject + ")" // else it cannot be compared with nil
	}
	return init, subject
}

// exprString writes an expression with the names of the generated file.
func (e *emitter) exprString(x *expr.Expr, names *nameSet) string {
	for _, g := range x.Guards {
		if g.Bind != nil && names.binds[g.Bind] == "" {
			names.binds[g.Bind] = names.pick("v")
		}
	}
	return e.nodeString(x.Node, x, names)
}

// nodeString writes a part of an expression.
func (e *emitter) nodeString(n ast.Expr, x *expr.Expr, names *nameSet) string {
	old := map[*ast.Ident]string{}
	rename := func(id *ast.Ident, name string) {
		if _, done := old[id]; !done {
			old[id] = id.Name
		}
		id.Name = name
	}
	for id, p := range x.Params {
		rename(id, names.params[p])
	}
	for _, g := range x.Guards {
		if g.Bind != nil {
			rename(g.Bind, names.binds[g.Bind])
		}
	}
	x.EachOutside(func(id *ast.Ident, obj types.Object) {
		if p, ok := obj.(*types.PkgName); ok {
			rename(id, e.imports.name(p.Imported().Path()))
		} else if expr.IsPackageLevel(obj) && obj.Pkg() != e.imports.own {
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
