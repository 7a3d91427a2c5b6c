package generator

import (
	"go/ast"
	"go/importer"
	"go/types"
	"strings"
	"testing"

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

type I[T ~string | ~int, S interface{ String() string }] interface {
	//ratelimit:max=5
	Do(ctx context.Context, id string, u User, t *Team, n int, list []*User, v T, s S, _ bool) error
}
`

// FuzzExpression checks that no text makes the checker of expressions panic,
// that an error has a place in the text, and that what passes can be written.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"#id", "#u.Team.Lead().Tags[0]", "key(#t.Map[#id].ID)", "#t != nil && #t.Any != nil", "strings.ToLower(#u.ID + \"x\")",
		"#t.Name(#id)", "#list[3].Team.Any", "#v", "#s", "len(#list)", "[]int{1}[0]", "#3.User.User", "struct{X int}{1}.X",
		"(*#t).User", "&#u", "map[string]int{}[#id]", "key[int](#n)", "#n*2/3", "-#n", "!(#8)", "func() int {}()", "#u.Team.Lead",
	} {
		f.Add(seed)
	}
	r, err := newRun(Config{Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	src := parseSource(r.fset, "fuzz.go", []byte(fuzzSource), r.at)
	info := &types.Info{Scopes: map[ast.Node]*types.Scope{}}
	config := types.Config{Importer: importer.ForCompiler(r.fset, "source", nil), IgnoreFuncBodies: true}
	pkg, err := config.Check("fuzz", r.fset, []*ast.File{src.ast}, info)
	if err != nil {
		f.Fatal(err)
	}
	file := &checkedFile{src: src, home: pkg, syntax: src.ast, content: []byte(fuzzSource), pkg: &packages.Package{
		Types: pkg, TypesInfo: info, Syntax: []*ast.File{src.ast},
	}}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "\n\r") || len(text) > 200 {
			t.Skip("an option is a part of a line")
		}
		r.found = nil
		w := r.newWrapper(file, src.ifaces[0])
		scope := newExprScope(r, file)
		at := src.ifaces[0].spec.Pos()
		for _, option := range []string{"key", "max", "when"} {
			e := scope.check(option, value{pos: at, text: text, exact: true}, w.methods[0])
			if e == nil {
				continue
			}
			if option == "key" {
				r.newKeyPart(e)
			}
		}
		for _, d := range r.found {
			if offset := int(d.pos - at); offset < 0 || offset > len(text)+1 {
				t.Errorf("%q: error at byte %d: %s", text, offset, d.Message)
			}
		}
	})
}
