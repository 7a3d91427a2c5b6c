package emit

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"regexp"

	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/generator/internal/naming"
)

// A nameSet gives out the names of one generated method, so that no parameter
// hides anything its body needs.
type nameSet struct {
	taken  map[string]bool
	params map[*expr.Param]string // and results
	binds  map[ast.Expr]string    // the variables that stand for parts of expressions
}

// predeclared are the names of Go itself that the generated code uses.
var predeclared = []string{"nil", "int64", "uint64", "string", "bool", "append", "make", "true", "false", "len", "any", "new", "panic"}

var identifier = regexp.MustCompile(`[\pL_][\pL\pN_]*`)

// methodNames chooses the names of a method's parameters: those of the
// interface wherever they are there and hide nothing.
func (e *emitter) methodNames(w *model.Wrapper, m *model.Method, receiver string, zeros []string) *nameSet {
	n := &nameSet{taken: e.needed(m, zeros), params: map[*expr.Param]string{}, binds: map[ast.Expr]string{}}
	n.taken[receiver] = true
	for _, name := range e.typeParamNames(w) {
		n.taken[name] = true // the receiver declares them in the same scope
	}
	if m.Receiver != nil {
		n.params[m.Receiver] = receiver + "." + w.NextField()
	}
	own := map[string]bool{}
	for _, p := range m.Params {
		own[p.Source] = true
	}
	for i, p := range m.Params {
		name := p.Source
		if name == "" || name == "_" {
			name = fmt.Sprint("arg", i)
			if m.Context() == p {
				name = "ctx"
			}
			for own[name] {
				name += "_"
			}
		}
		n.params[p] = n.pick(name)
	}
	if m.HasEnd() {
		e.resultNames(m, n)
	}
	return n
}

// resultNames chooses the names of a method's results: those of the interface
// where they are there, else what their types suggest. An error result that is
// called nothing else shares its variable with the refusal.
func (e *emitter) resultNames(m *model.Method, n *nameSet) {
	results := m.Results
	if m.ReturnsError() {
		last := len(results) - 1
		if p := results[last]; p.Source == "" || p.Source == "_" || p.Source == "err" {
			n.params[p] = n.pick("err")
			n.params[m.Refusal] = n.params[p]
			results = results[:last]
		}
	}
	for _, p := range results {
		name := p.Source
		suggested := naming.LowerFirst(typeName(p.Type))
		switch {
		case name != "" && name != "_":
		case expr.IsError(p.Type):
			name = "err"
		case suggested == "" || n.taken[suggested] || types.Universe.Lookup(suggested) != nil || token.IsKeyword(suggested):
			name = "result"
		default:
			name = suggested
		}
		n.params[p] = n.pick(name)
	}
}

// typeName returns the name of a type, or of what a pointer points to, or "".
func typeName(t types.Type) string {
	if n := gotypes.Named(t); n != nil {
		return n.Obj().Name()
	}
	return ""
}

// bind returns the variable that stands for a part of an expression, or "".
func (n *nameSet) bind(x ast.Expr) string {
	if n == nil {
		return ""
	}
	return n.binds[x]
}

// pick returns a name that is free, and takes it.
func (n *nameSet) pick(name string) string {
	name = naming.Free(name, n.taken)
	n.taken[name] = true
	return name
}

// needed returns the names that a method's body takes from outside.
func (e *emitter) needed(m *model.Method, zeros []string) map[string]bool {
	names := map[string]bool{}
	if len(m.Limits) == 0 {
		return names
	}
	for _, name := range e.imports.names {
		names[name] = true
	}
	for _, zero := range zeros {
		for _, name := range identifier.FindAllString(zero, -1) {
			names[name] = true
		}
	}
	for _, name := range predeclared {
		names[name] = true
	}
	for _, l := range m.Limits {
		names[l.Rule.VarName] = true
	}
	if m.Stream != nil {
		names[m.Stream.TypeName] = true
	}
	m.EachExpr(func(x *expr.Expr) {
		x.EachOutside(func(id *ast.Ident, obj types.Object) { names[id.Name] = true })
	})
	return names
}

// receiver returns a receiver's name that fits all methods of a wrapper.
func (e *emitter) receiver(w *model.Wrapper) string {
	taken := map[string]bool{}
	for _, m := range w.Methods {
		for _, p := range m.Params {
			taken[p.Source] = true
		}
		for _, p := range m.Results {
			if m.HasEnd() { // only then do they have names
				taken[p.Source] = true
			}
		}
		maps.Copy(taken, e.needed(m, nil))
	}
	for _, name := range e.typeParamNames(w) {
		taken[name] = true
	}
	for _, name := range []string{"s", "w", "limited"} {
		if !taken[name] {
			return name
		}
	}
	return naming.Free("s", taken)
}
