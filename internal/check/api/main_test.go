package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
)

// TestAPI compares the list with the code. Nested modules, which need
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

// TestChanges changes a package in many ways. One that can break a program takes a line
// away, any other adds one, and one that nobody can see does neither.
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
		"hidden":              {"func hidden() {}", "func other() {}", ""},
		"constant":            {"Limit = 1", "Limit = 2", "-+"},
		"type of a variable":  {"Err error", "Err any", "-+"},
		"new function":        {"func hidden", "func More() {}\nfunc hidden", "+"},
		"function gone":       {"func New(store Store, options ...Option) *T { return nil }", "", "-"},
		"parameter added":     {"New(store Store,", "New(n int, store Store,", "-+"},
		"not variadic":        {"options ...Option", "options []Option", "-+"},
		"result":              {"*T { return nil }", "(*T, error) { return nil, nil }", "-+"},
		"method of a pointer": {"(t T) Get()", "(t *T) Get()", "-+"},
		"new field":           {"A int; inner", "A int; inner; C int", "+"},
		"field gone":          {"{ A int; inner }", "{ inner }", "-"},
		"first hidden field":  {"Open struct{ A int }", "Open struct{ A int; b int }", "-+"},
		"not comparable":      {"Open struct{ A int }", "Open struct{ A int; F []int }", "-+"},
		"method of interface": {"Take(key string)", "Peek()\nTake(key string)", "-+"},
		"hidden method":       {"Take(key string)", "peek()\nTake(key string)", "-+"},
		"constraint":          {"List[E any]", "List[E comparable]", "-+"},
		"alias":               {"Alias = T", "Alias = Open", "-+"},
	} {
		source := strings.Replace(base, c.old, c.new, 1)
		if c.old != "" && source == base {
			t.Fatalf("%s: nothing is replaced", name)
		}
		changes := compare(apiOf(t, base), apiOf(t, source))
		got := ""
		for _, sign := range []string{"-", "+"} {
			if strings.Contains("\n"+changes, "\n"+sign) {
				got += sign
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q:\n%s", name, got, c.want, changes)
		}
	}
}

// Somebody who limits calls reads package runtime in ten minutes. A method for adapters belongs in
// package wrapper, one for operators behind internal/bridge. No exported declaration names a type
// that its users cannot.
func TestRuntimeIsSmall(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../api.txt")
	limittest.OK(t, err)
	symbols := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^runtime, (?:const|func|type|var) (\w+)`).FindAllSubmatch(text, -1) {
		symbols[string(m[1])] = true
	}
	methods := regexp.MustCompile(`(?m)^runtime, method \(\*Limiter\) `).FindAll(text, -1)
	if len(symbols) == 0 || len(symbols) > 90 || len(methods) == 0 || len(methods) > 18 {
		t.Errorf("package runtime has %d symbols, and a Limiter %d methods: 90 and 18 at most", len(symbols), len(methods))
	}
	for _, line := range regexp.MustCompile(`(?m)^.*,.*\binternal/.*`).FindAll(text, -1) {
		t.Errorf("%s names a type that its users cannot", line)
	}
}
