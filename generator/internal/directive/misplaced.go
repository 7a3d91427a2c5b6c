package directive

import (
	"go/ast"
	"go/token"
)

const whereItBelongs = "write it directly above a method"

// misplaced says what is wrong with the place of a directive that belongs to
// no interface and no method of one.
func misplaced(fset *token.FileSet, group *ast.CommentGroup, decls []ast.Node) string {
	for _, decl := range decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Doc == group {
				return "a directive on a function limits nothing: declare a type such as SendFunc func(…) error with a method that calls the function, and write it above that method"
			}
			if within(group, decl) {
				return "a directive in a function body limits nothing: " + whereItBelongs
			}
		case *ast.GenDecl:
			if decl.Doc == group && decl.Tok == token.TYPE && decl.Lparen.IsValid() {
				return "a directive on a group of types limits nothing: write it directly above one interface in the group, or above its methods"
			}
			for _, s := range decl.Specs {
				if text := misplacedInSpec(fset, group, decl, s); text != "" {
					return text
				}
			}
		}
	}
	return "a blank line or another declaration separates this directive from a method, so it limits nothing: " + whereItBelongs
}

func misplacedInSpec(fset *token.FileSet, group *ast.CommentGroup, decl *ast.GenDecl, s ast.Spec) string {
	spec, ok := s.(*ast.TypeSpec)
	if !ok {
		if decl.Doc == group || within(group, decl) {
			return "a directive on " + article[decl.Tok] + " limits nothing: " + whereItBelongs
		}
		return ""
	}
	doc := spec.Doc == group || decl.Doc == group
	switch t := spec.Type.(type) {
	case *ast.StructType:
		if within(group, t) {
			return "a directive on a struct field limits nothing: " + whereItBelongs
		}
		if doc {
			return "type " + spec.Name.Name + " is a struct: write the directive above its methods, or above an interface or its methods"
		}
	case *ast.InterfaceType:
		if spec.Comment == group {
			return "a directive after a type limits nothing: write it above the type, or above its methods"
		}
		for _, f := range t.Methods.List {
			if f.Comment == group {
				return "a directive after a method limits nothing: write it on the line above the method"
			}
			if f.Doc == group {
				return "a directive on an embedded interface limits nothing: write it above the interface that embeds it, or in the declaration of the embedded one"
			}
			if within(group, f) {
				return "a directive inside a method's signature limits nothing: write it on the line above the method"
			}
		}
		line := func(pos token.Pos) int { return fset.PositionFor(pos, false).Line }
		if within(group, t) && line(group.Pos()) == line(t.Methods.Opening) {
			return "a directive behind an opening brace limits nothing: write it on a line of its own, directly above the method"
		}
		if within(group, t) {
			return "a blank line separates this directive from its method, so it limits nothing: write it directly above the method"
		}
	}
	if doc || spec.Comment == group || within(group, spec) {
		return "type " + spec.Name.Name + " is not an interface: declare an interface and " + whereItBelongs
	}
	return ""
}

var article = map[token.Token]string{token.IMPORT: "an import", token.CONST: "a constant", token.VAR: "a variable", token.TYPE: "a type"}

func within(group *ast.CommentGroup, n ast.Node) bool {
	return n.Pos() <= group.Pos() && group.End() <= n.End()
}
