package gotypes

import (
	"go/ast"
	"go/token"
	"go/types"
)

// NoAliases says why nothing can be generated where [HasAliases] reports false.
const NoAliases = "GODEBUG has gotypesalias=0, which hides the names that types have by an alias: remove it from GODEBUG"

// HasAliases reports whether the type checker tells aliases from what they stand for, which
// the environment variable GODEBUG can forbid.
func HasAliases() bool {
	file := &ast.File{Name: ast.NewIdent("p"), Decls: []ast.Decl{&ast.GenDecl{
		Tok: token.TYPE, Specs: []ast.Spec{&ast.TypeSpec{Name: ast.NewIdent("A"), Assign: 1, Type: ast.NewIdent("int")}},
	}}}
	pkg, _ := new(types.Config).Check("p", token.NewFileSet(), []*ast.File{file}, nil)
	_, ok := pkg.Scope().Lookup("A").Type().(*types.Alias)
	return ok
}
