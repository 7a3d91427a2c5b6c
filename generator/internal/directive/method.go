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
		if src := decl.Sources[name]; src != nil {
			for _, m := range src.Methods {
				if m.fn.Name.Name == name && ReceiverName(m.fn) == decl.Spec.Name.Name {
					return doc(m.fn.Doc, m.fn.Pos()), m.fn.Type.End()
				}
			}
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
