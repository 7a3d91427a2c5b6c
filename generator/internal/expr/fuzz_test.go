package expr

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/load"
	"golang.org/x/tools/go/packages"
)

const fuzzSource = `package fuzz

import (
	"context"
	"strings"
)

var _ strings.Builder

type User struct {
	ID   string
	Team *Team
	Tags []string
}

type Team struct {
	*User
	Name func(string) string
	Any  interface{ String() string }
	Map  map[string]*User
}

func (t *Team) Lead() *User { return t.User }

func key[T any](v T) string { return "" }

func outcome(id string, err error) (*Team, int, error) { return nil, 0, err }

type I[T ~string | ~int, S interface{ String() string }] interface {
	//ratelimit:max=5
	Do(ctx context.Context, id string, u User, t *Team, n int, list []*User, v T, s S, _ bool) (found *Team, left int, err error)
}
`

// FuzzExpression checks that no text makes the checker of expressions panic,
// that an error has a place in the text, and that what passes can be written.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"#id", "#u.Team.Lead().Tags[0]", "key(#t.Map[#id].ID)", "#t != nil && #t.Any != nil", "strings.ToLower(#u.ID + \"x\")",
		"#t.Name(#id)", "#list[3].Team.Any", "#v", "#s", "len(#list)", "[]int{1}[0]", "#3.User.User", "struct{X int}{1}.X",
		"#err == nil", "#err != nil || #found.Lead().Tags[0] == #id", "#found.Any != nil && (#found.User.ID == #id || #0.Err() != nil)", "#left + #result1",
		"#result.Map[#id].Tags[1]", "#result2", "outcome(#id, #err)", "outcome(#t.Lead().ID, #err)", "#0result", "#result99999999999999999999", "errors.Is(#err, #err)", "outcome(#found)",
		"(*#t).User", "&#u", "map[string]int{}[#id]", "key[int](#n)", "##", "#", "#é", "#n*2/3", "-#n", "!(#8)", "func() int {}()", "#u.Team.Lead",
	} {
		f.Add(seed)
	}
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, "fuzz.go", fuzzSource, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		f.Fatal(err)
	}
	info := &types.Info{Scopes: map[ast.Node]*types.Scope{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "source", nil), IgnoreFuncBodies: true}
	pkg, err := config.Check("fuzz", fset, []*ast.File{syntax}, info)
	if err != nil {
		f.Fatal(err)
	}
	spec := syntax.Decls[len(syntax.Decls)-1].(*ast.GenDecl).Specs[0].(*ast.TypeSpec)
	file := &load.File{Source: &directive.File{Syntax: syntax}, Syntax: syntax, Pkg: &packages.Package{Fset: fset, Types: pkg, TypesInfo: info}}
	method := &Signature{Name: "Do", Refusal: &Param{Source: "err", Type: types.Universe.Lookup("error").Type()}}
	sig := pkg.Scope().Lookup("I").Type().Underlying().(*types.Interface).Method(0).Signature()
	for v := range sig.Params().Variables() {
		method.Params = append(method.Params, &Param{Source: v.Name(), Type: v.Type()})
	}
	for v := range sig.Results().Variables() {
		method.Results = append(method.Results, &Param{Source: v.Name(), Type: v.Type()})
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "\n\r") || len(text) > 200 {
			t.Skip("an option is a part of a line")
		}
		report := diag.NewReporter(fset, "")
		scope := NewScope(file, pkg, report)
		v := directive.Value{Pos: spec.Pos(), Text: text, Exact: true}
		scope.Part("key", v, method)
		scope.Integer("max", v, method)
		for option, m := range map[string]*Signature{"when": method, "refund": method.After()} {
			if e := scope.Boolean(option, v, m); e != nil {
				e.Cut(option == "refund")
				e.InTurn()
			}
		}
		scope.Integer("settle", v, method.After())
		scope.Call("deny", v, method.Refused(), "call another function")
		start := fset.Position(v.Pos).Offset
		for _, d := range report.Diagnostics() {
			if offset := d.Pos.Offset - start; offset < 0 || offset > len(text)+1 {
				t.Errorf("%q: error at byte %d: %s", text, offset, d.Message)
			}
		}
	})
}
