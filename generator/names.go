package generator

import (
	"fmt"
	"go/ast"
	"go/types"
	"regexp"
)

// A nameSet gives out the names of one generated method, so that no parameter
// hides anything its body needs.
type nameSet struct {
	taken  map[string]bool
	params map[*param]string
	binds  map[*ast.Ident]string
}

var identifier = regexp.MustCompile(`[\pL_][\pL\pN_]*`)

// methodNames chooses the names of a method's parameters: those of the
// interface wherever they are there and hide nothing.
func (e *emitter) methodNames(w *wrapper, m *method, receiver string, zeros []string) *nameSet {
	n := &nameSet{taken: e.needed(m, zeros), params: map[*param]string{}, binds: map[*ast.Ident]string{}}
	n.taken[receiver] = true
	for _, name := range e.typeParamNames(w) {
		n.taken[name] = true // the receiver declares them in the same scope
	}
	own := map[string]bool{}
	for _, p := range m.params {
		own[p.source] = true
	}
	for i, p := range m.params {
		name := p.source
		if name == "" || name == "_" {
			name = fmt.Sprint("arg", i)
			if m.context() == p {
				name = "ctx"
			}
			for own[name] {
				name += "_"
			}
		}
		n.params[p] = n.pick(name)
	}
	return n
}

// pick returns a name that is free, and takes it.
func (n *nameSet) pick(name string) string {
	name = free(name, n.taken)
	n.taken[name] = true
	return name
}

// needed returns the names that a method's body takes from outside.
func (e *emitter) needed(m *method, zeros []string) map[string]bool {
	names := map[string]bool{}
	if len(m.uses) == 0 {
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
	for _, name := range []string{"nil", "int64", "uint64", "string", "bool", "append", "make", "true", "len", "any"} {
		names[name] = true
	}
	for _, u := range m.uses {
		names[u.limit.varName] = true
		u.eachExpr(func(x *checkedExpr) {
			x.eachOutside(func(id *ast.Ident, obj types.Object) { names[id.Name] = true })
		})
	}
	return names
}

// receiver returns a receiver's name that fits all methods of a wrapper.
func (e *emitter) receiver(w *wrapper) string {
	taken := map[string]bool{}
	for _, m := range w.methods {
		for _, p := range m.params {
			taken[p.source] = true
		}
		for name := range e.needed(m, nil) {
			taken[name] = true
		}
	}
	for _, name := range e.typeParamNames(w) {
		taken[name] = true
	}
	for _, name := range []string{"s", "w", "limited"} {
		if !taken[name] {
			return name
		}
	}
	return free("s", taken)
}
