package load

import (
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
	"strings"

	"github.com/rategen/rategen/generator/internal/directive"
)

// The interface of a concrete type must be known while the package is
// type-checked. Its methods may stand in several files, and only there do the
// names in their signatures have the right meaning. So each method gets an
// interface of its own in its file, which shares the signature's syntax, and
// the type's interface embeds them all.

// methodStubName returns a name that no other method has: A.B_C has another one
// than A_B.C.
func methodStubName(typeName, method string) string {
	return fmt.Sprint(StubPrefix, "method_", len(typeName), "_", typeName, "_", method)
}

// StubbedType returns the type whose method has an interface of its own here, or "".
func StubbedType(stub string) string {
	rest, ok := strings.CutPrefix(stub, StubPrefix+"method_")
	length, rest, _ := strings.Cut(rest, "_")
	n, err := strconv.Atoi(length)
	if !ok || err != nil || n > len(rest) {
		return ""
	}
	return rest[:n]
}

// constraintName returns the name of the constraint of a type's i-th parameter.
// It is declared where the type is, since only there do the names in it have the
// right meaning, and a generic type: methods may call the parameters otherwise.
func constraintName(typeName string, i int) string {
	return fmt.Sprint(StubPrefix, "constraint_", i, "_", typeName)
}

// stubConstraints writes the constraints of a type's parameters.
func stubConstraints(text *strings.Builder, decl *directive.Decl, params string, constraints []string) {
	for i, c := range constraints {
		fmt.Fprintf(text, "\ntype %s%s interface { %s }\n", constraintName(decl.Concrete.Name, i), params, c)
	}
}

// stubMethods adds the interfaces of the methods that a file declares.
func stubMethods(file *ast.File, types map[string][]*directive.Concrete, path string) {
	var stubs []ast.Decl
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || !fn.Name.IsExported() {
			continue
		}
		for _, declared := range types {
			for _, t := range declared {
				if t.Pkg == file.Name.Name && t.Owns(fn) && t.Files[path] {
					stubs = append(stubs, methodStub(t, fn))
				}
			}
		}
	}
	file.Decls = append(file.Decls, stubs...)
}

// methodStub returns an interface of one method.
func methodStub(t *directive.Concrete, fn *ast.FuncDecl) ast.Decl {
	pos := fn.Name.Pos()
	at := func(name string) *ast.Ident { return &ast.Ident{NamePos: pos, Name: name} }
	spec := &ast.TypeSpec{
		Name: at(methodStubName(t.Name, fn.Name.Name)),
		Type: &ast.InterfaceType{Interface: pos, Methods: &ast.FieldList{
			Opening: pos, List: []*ast.Field{{Names: []*ast.Ident{at(fn.Name.Name)}, Type: fn.Type}}, Closing: pos,
		}},
	}
	if _, names := directive.Receiver(fn); len(names) > 0 && t.Spec.TypeParams != nil {
		own := make([]string, len(names))
		for i, id := range names {
			if own[i] = id.Name; own[i] == "_" {
				own[i] = fmt.Sprint(StubPrefix, i)
			}
		}
		list := &ast.FieldList{Opening: pos, Closing: pos}
		for i, name := range own {
			constraint := &ast.IndexListExpr{X: at(constraintName(t.Name, i)), Lbrack: pos, Rbrack: pos}
			for _, name := range own {
				constraint.Indices = append(constraint.Indices, at(name))
			}
			list.List = append(list.List, &ast.Field{Names: []*ast.Ident{at(name)}, Type: constraint})
		}
		spec.TypeParams = list
	}
	return &ast.GenDecl{TokPos: pos, Tok: token.TYPE, Specs: []ast.Spec{spec}}
}

// stubInterface writes the interface of a concrete type.
func stubInterface(text *strings.Builder, decl *directive.Decl, params, args string) {
	fmt.Fprintf(text, "\ntype %s%s interface {", decl.InterfaceName(), params)
	for _, m := range decl.Concrete.Methods {
		fmt.Fprintf(text, " %s%s;", methodStubName(decl.Concrete.Name, m), args)
	}
	text.WriteString(" }\n")
}
