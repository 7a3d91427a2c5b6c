package model

import (
	"go/types"

	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/gotypes"
)

// receiverOf returns the receiver of a method of a concrete type that has directives, or
// nil if it has no name.
func (w *Wrapper) receiverOf(method string, p *types.Package) *expr.Param {
	fn := w.Decl.Func(method)
	if fn == nil || len(fn.Recv.List[0].Names) == 0 || fn.Recv.List[0].Names[0].Name == "_" {
		return nil
	}
	obj, _ := p.Scope().Lookup(w.Name).(*types.TypeName)
	if obj == nil {
		return nil
	}
	t := obj.Type()
	if named, ok := t.(*types.Named); ok {
		t = gotypes.InstanceOf(named, w.TypeParams)
	}
	declared, _, _ := types.LookupFieldOrMethod(obj.Type(), true, p, method)
	if m, ok := declared.(*types.Func); ok && gotypes.Is[*types.Pointer](m.Signature().Recv().Type()) {
		t = types.NewPointer(t)
	}
	return &expr.Param{Source: fn.Recv.List[0].Names[0].Name, Type: t}
}

// UsesReceiver reports whether an expression uses the receiver of its method. The wrapper
// then holds a pointer to the concrete type in place of its interface.
func (w *Wrapper) UsesReceiver() bool {
	used := false
	for _, m := range w.Methods {
		m.EachExpr(func(e *expr.Expr) {
			for _, p := range e.Params {
				used = used || p == m.Receiver
			}
		})
	}
	return used
}
