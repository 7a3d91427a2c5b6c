package directive

import (
	"go/ast"
	"go/token"
)

// ExplicitOrder numbers the methods that an interface declares itself.
func ExplicitOrder(spec *ast.TypeSpec) map[string]int {
	order := map[string]int{}
	if t, ok := spec.Type.(*ast.InterfaceType); ok {
		for i, field := range t.Methods.List {
			for _, n := range field.Names {
				order[n.Name] = i
			}
		}
	}
	return order
}

// MethodRange returns where the declaration of a method begins, its comment included,
// and where its signature ends; or no positions if the declaration is elsewhere.
func (decl *Decl) MethodRange(name string) (from, to token.Pos) {
	doc := func(doc *ast.CommentGroup, pos token.Pos) token.Pos {
		if doc != nil {
			return doc.Pos()
		}
		return pos
	}
	if decl.Concrete != nil {
		if fn := decl.Func(name); fn != nil {
			return doc(fn.Doc, fn.Pos()), fn.Type.End()
		}
		return token.NoPos, token.NoPos
	}
	if t, ok := decl.Spec.Type.(*ast.InterfaceType); ok {
		for _, field := range t.Methods.List {
			for _, n := range field.Names {
				if n.Name == name {
					return doc(field.Doc, field.Pos()), field.End()
				}
			}
		}
	}
	return token.NoPos, token.NoPos
}

// Func returns the declaration of a method of a concrete type that has directives, or nil.
func (decl *Decl) Func(method string) *ast.FuncDecl {
	if src := decl.Sources[method]; decl.Concrete != nil && src != nil {
		for _, m := range src.Methods {
			if m.fn.Name.Name == method && decl.Concrete.Owns(m.fn) {
				return m.fn
			}
		}
	}
	return nil
}
