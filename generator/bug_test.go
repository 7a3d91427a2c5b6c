package generator_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/rategen/rategen/generator"
)

// A bug of rategen is an error at the place that it was working on, and asks for a
// report. Here the caller has not asked the type checker for what is needed.
func TestBug(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "a.go", "package a\n\ntype I interface {\n\t//ratelimit:key=#id\n\tGet(id string) error\n}\n", parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	config := types.Config{Importer: importer.Default()}
	pkg, err := config.Check("a", fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := generator.Vet(generator.Package{Fset: fset, Files: []*ast.File{file}, Types: pkg})
	if len(found) != 1 || found[0].Pos.Filename != "a.go" || found[0].Pos.Line == 0 || !strings.Contains(found[0].Message, "please report it") {
		t.Error(found)
	}
}
