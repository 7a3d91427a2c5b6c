package load

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"

	"github.com/rategen/rategen/generator/internal/directive"
)

// The interface of a concrete type must be known while the package is
// type-checked. Its methods may stand in several files, and only there do the
// names in their signatures have the right meaning. So each method gets an
// interface of its own in its file, which shares the signature's syntax, and
// the type's interface embeds them all.

func methodStubName(typeName, method string) string {
	return StubPrefix + "method_" + typeName + "_" + method
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
				if t.Pkg == file.Name.Name && t.Name == directive.ReceiverName(fn) && t.Files[path] {
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
		list := &ast.FieldList{Opening: pos, Closing: pos}
		i := 0
		for _, f := range t.Spec.TypeParams.List {
			for range f.Names {
				if i < len(names) {
					list.List = append(list.List, &ast.Field{Names: []*ast.Ident{at(names[i].Name)}, Type: f.Type})
				}
				i++
			}
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
