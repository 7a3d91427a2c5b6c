package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
)

// TestAPI compares the lists in api with the code. Nested modules, which need
// dependencies of their own, are compared in a full run.
func TestAPI(t *testing.T) {
	if err := run("../../..", !effort.Full(), false); err != nil {
		t.Error(err)
	}
}

// apiOf returns the list of a package with this source.
func apiOf(t *testing.T, source string) []string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", "package p\n"+source, 0)
	limittest.OK(t, err)
	p, err := new(types.Config).Check("example.com/p", fset, []*ast.File{file}, nil)
	limittest.OK(t, err)
	return api(p)
}

// TestChanges changes a package in many ways. A change that can break a program is
// incompatible, any other is new, and one that nobody can see is none.
func TestChanges(t *testing.T) {
	const base = `
const Limit = 1
var Err error
type Option func(*T)
type T struct { A int; inner }
type inner struct{ B string }
type Open struct{ A int }
type Store interface { Take(key string) (ok bool, err error) }
type List[E any] []E
type Alias = T
func New(store Store, options ...Option) *T { return nil }
func (t *T) Do(f func(name string) error) {}
func (t T) Get() int { return 0 }
func hidden() {}
`
	for name, c := range map[string]struct{ old, new, want string }{
		"nothing":             {"", "", ""},
		"parameter renamed":   {"New(store Store,", "New(s Store,", ""},
		"of a function type":  {"f func(name string) error", "f func(n string) error", ""},
		"hidden":              {"func hidden() {}", "func other() {}", ""},
		"constant":            {"Limit = 1", "Limit = 2", "gone new"},
		"type of a variable":  {"Err error", "Err any", "gone new"},
		"new function":        {"func hidden", "func More() {}\nfunc hidden", "new"},
		"function gone":       {"func New(store Store, options ...Option) *T { return nil }", "", "gone"},
		"parameter added":     {"New(store Store,", "New(n int, store Store,", "gone new"},
		"not variadic":        {"options ...Option", "options []Option", "gone new"},
		"result":              {"*T { return nil }", "(*T, error) { return nil, nil }", "gone new"},
		"method of a pointer": {"(t T) Get()", "(t *T) Get()", "gone new"},
		"new field":           {"A int; inner", "A int; inner; C int", "new"},
		"field gone":          {"{ A int; inner }", "{ inner }", "gone"},
		"first hidden field":  {"Open struct{ A int }", "Open struct{ A int; b int }", "gone new"},
		"not comparable":      {"Open struct{ A int }", "Open struct{ A int; F []int }", "gone new"},
		"method of interface": {"Take(key string)", "Peek()\nTake(key string)", "gone new"},
		"constraint":          {"List[E any]", "List[E comparable]", "gone new"},
		"alias":               {"Alias = T", "Alias = Open", "gone new"},
	} {
		source := strings.Replace(base, c.old, c.new, 1)
		if c.old != "" && source == base {
			t.Fatalf("%s: nothing is replaced", name)
		}
		path := filepath.Join(t.TempDir(), "p.txt")
		limittest.OK(t, os.WriteFile(path, []byte(strings.Join(apiOf(t, base), "\n")+"\n"), 0o600))
		difference, err := compare(path, apiOf(t, source))
		limittest.OK(t, err)
		var got []string
		if strings.Contains(difference, "INCOMPATIBLE") {
			got = append(got, "gone")
		}
		if strings.Contains(difference, "  new ") {
			got = append(got, "new")
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %q:\n%s", name, got, c.want, difference)
		}
	}
	if difference, err := compare(filepath.Join(t.TempDir(), "none.txt"), apiOf(t, base)); err != nil || !strings.Contains(difference, "new") {
		t.Errorf("a package without a list: %q, %v", difference, err)
	}
}
