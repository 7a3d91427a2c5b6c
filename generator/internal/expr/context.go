package expr

import (
	"go/ast"
	"go/types"
	"strconv"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/gotypes"
)

// ctxOption names the call's context.
const ctxOption = "ctx"

// Context checks an expression that must give a context. It must not
// give nil, which is of no use to anybody.
func (s *Scope) Context(v directive.Value, m *Signature) *Expr {
	e := s.check(ctxOption, v, m)
	if e == nil {
		return nil
	}
	if !gotypes.IsContext(e.Type) {
		hint := ""
		if gotypes.HasContext(e.Type) {
			hint = ": write " + v.Text + ".Context()"
		}
		return s.refused(e, "%s is of type %s, not a context.Context%s", v.Text, e.typeName(), hint)
	}
	e.NotNil = isNilable(e.Type) && !e.isStandardCall()
	return e
}

// isStandardCall reports whether an expression calls what never returns a nil
// context: a function of package context, or the method of an http.Request.
func (e *Expr) isStandardCall() bool {
	call, ok := e.Node.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	f, ok := e.Info.Uses[sel.Sel].(*types.Func)
	return ok && f.Pkg() != nil && (f.Pkg().Path() == "context" && f.Signature().Recv() == nil || f.Pkg().Path() == "net/http")
}

// ContextOf returns the expression for the context that the i-th parameter of a
// method brings, or nil: what its method Context returns, or itself.
func (s *Scope) ContextOf(i int, m *Signature) *Expr {
	text := "#" + strconv.Itoa(i)
	t := m.Params[i].Type
	if gotypes.HasContext(t) {
		text += ".Context()"
	} else if !gotypes.IsContext(t) {
		return nil
	}
	// One that the generated code could not write is none, and nobody's fault.
	return s.Quiet().Context(directive.Value{Text: text}, m)
}
