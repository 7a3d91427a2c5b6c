package expr

import (
	"go/ast"
	"go/types"
	"strings"

	"github.com/rategen/rategen/generator/internal/directive"
)

// Call checks a call expression whose results must fit those of the method; remedy
// says what can be done if they do not. A call that may be impossible to evaluate
// needs a method with an error result, to return the refusal then.
func (s *Scope) Call(option string, v directive.Value, m *Signature, remedy string) *Expr {
	e := s.typed(option, v, m)
	if e == nil {
		return nil
	}
	if _, ok := ast.Unparen(e.Node).(*ast.CallExpr); !ok {
		return s.refused(e, "%s is not a call: write a function with the results of %s and call it", v.Text, m.Name)
	}
	if !fits(e.Type, m.Results) {
		return s.refused(e, "%s gives %s, and %s returns %s: %s", v.Text, s.namesOf(typesOf(e.Type)), m.Name, s.namesOf(resultTypes(m)), remedy)
	}
	if tests := Tests(e.Lower(Facts{}).Steps); len(tests) > 0 && m.failure() == nil {
		return s.refused(e, "%s cannot be evaluated if %s, and %s has no error result to return then: write a function that looks first, and call it", v.Text, tests[0].Reason, m.Name)
	}
	if !s.reachable(e) {
		return nil
	}
	return e
}

// fits reports whether a call of type t can be returned as some results.
func fits(t types.Type, results []*Param) bool {
	given := typesOf(t)
	if len(given) != len(results) {
		return false
	}
	for i, p := range results {
		if !types.AssignableTo(given[i], p.Type) {
			return false
		}
	}
	return true
}

// typesOf returns the types of what a call gives.
func typesOf(t types.Type) []types.Type {
	tuple, ok := t.(*types.Tuple)
	if !ok {
		return []types.Type{t}
	}
	var all []types.Type
	for v := range tuple.Variables() {
		all = append(all, v.Type())
	}
	return all
}

func resultTypes(m *Signature) []types.Type {
	var all []types.Type
	for _, p := range m.Results {
		all = append(all, p.Type)
	}
	return all
}

// namesOf writes types as a signature has them.
func (s *Scope) namesOf(all []types.Type) string {
	var names []string
	for _, t := range all {
		names = append(names, typeName(t, s.pkg))
	}
	switch len(names) {
	case 0:
		return "nothing"
	case 1:
		return names[0]
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// typeName returns the type of the expression as its package would write it.
func (e *Expr) typeName() string { return typeName(e.Type, e.pkg) }

func typeName(t types.Type, pkg *types.Package) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == pkg {
			return ""
		}
		return p.Name()
	})
}
