package generator

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// The interface of a concrete type must be known while the package is
// type-checked. Its methods may stand in several files, and only there do the
// names in their signatures have the right meaning. So each method gets an
// interface of its own in its file, which shares the signature's syntax, and
// the type's interface embeds them all.

func methodStubName(typeName, method string) string {
	return stubPrefix + "method_" + typeName + "_" + method
}

// stubMethods adds the interfaces of the methods that a file declares.
func stubMethods(file *ast.File, types map[string][]*concreteType, path string) {
	var stubs []ast.Decl
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || !fn.Name.IsExported() {
			continue
		}
		for _, declared := range types {
			for _, t := range declared {
				if t.pkg == file.Name.Name && t.name == receiverName(fn) && t.files[path] {
					stubs = append(stubs, methodStub(t, fn))
				}
			}
		}
	}
	file.Decls = append(file.Decls, stubs...)
}

// methodStub returns an interface of one method.
func methodStub(t *concreteType, fn *ast.FuncDecl) ast.Decl {
	pos := fn.Name.Pos()
	at := func(name string) *ast.Ident { return &ast.Ident{NamePos: pos, Name: name} }
	spec := &ast.TypeSpec{
		Name: at(methodStubName(t.name, fn.Name.Name)),
		Type: &ast.InterfaceType{Interface: pos, Methods: &ast.FieldList{
			Opening: pos, List: []*ast.Field{{Names: []*ast.Ident{at(fn.Name.Name)}, Type: fn.Type}}, Closing: pos,
		}},
	}
	if _, names := receiver(fn); len(names) > 0 && t.spec.TypeParams != nil {
		list := &ast.FieldList{Opening: pos, Closing: pos}
		i := 0
		for _, f := range t.spec.TypeParams.List {
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
func stubInterface(text *strings.Builder, decl *ifaceDecl, params, args string) {
	fmt.Fprintf(text, "\ntype %s%s interface {", decl.interfaceName(), params)
	for _, m := range decl.concrete.methods {
		fmt.Fprintf(text, " %s%s;", methodStubName(decl.concrete.name, m), args)
	}
	text.WriteString(" }\n")
}
