// Package expr checks the Go expressions of directives in the scope of their
// source file, and finds the places that need a guard so that they cannot panic.
package expr

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/load"
)

// A Signature is a method as its expressions see it.
type Signature struct {
	Name    string
	Types   []*types.TypeName // the type parameters of its interface
	Params  []*Param
	Results []*Param
	Refusal *Param // the error of a refused call, which deny= calls #err
	Message *Param // what a stream carries, which meter= calls by its name, or nil
	// Receiver is the value of a concrete type that the method is called on, or nil. It
	// is a pointer, or expressions cannot use it.
	Receiver *Param

	moment moment // at which an expression is evaluated
}

// A Param is a parameter or a result of a method.
type Param struct {
	Source string // its name in the interface; may be "" or "_"
	Type   types.Type
}

// An Expr is an expression of a directive that has passed the type checker.
type Expr struct {
	Option string          // whose value it is, or is a part of
	Source directive.Value // as it is written
	Node   ast.Expr
	Type   types.Type
	Const  constant.Value        // nil if it is not constant
	Info   *types.Info           // Types, Uses, Selections and Instances of Node
	Params map[*ast.Ident]*Param // the identifiers, called #id or #0, that are parameters or results
	NotNil bool                  // Node must not give nil

	base   token.Pos      // of the first byte of Source.Text in Node's positions
	pkg    *types.Package // whose file it stands in
	notNil []*Param       // of its method, that are never nil
}

// A Scope checks expressions as if they stood in a source file.
type Scope struct {
	report *diag.Reporter
	pkg    *types.Package   // of the source file
	home   *types.Package   // that the expressions are written to
	names  *types.Scope     // of the source file
	extra  []*types.PkgName // what only directives import
}

// NewScope returns the scope of a source file whose wrappers are written to
// package home. It reports imports of directives that cannot be had.
func NewScope(f *load.File, home *types.Package, r *diag.Reporter) *Scope {
	s := &Scope{report: r, pkg: f.Pkg.Types, home: home, names: f.Pkg.TypesInfo.Scopes[f.Syntax]}
	for _, spec := range f.Source.Imports {
		p := f.Pkg.Imports[spec.Path]
		if p == nil || p.Types == nil {
			r.At(spec.Pos, "ratelimit:import: package %s cannot be imported: check its path, and go.mod", spec.Path)
			continue
		}
		name := spec.Name
		if name == "" {
			name = p.Types.Name()
		}
		if known, ok := s.names.Lookup(name).(*types.PkgName); ok && known.Imported().Path() == spec.Path {
			r.At(spec.Pos, "ratelimit:import: the file imports %q already: remove this line", spec.Path)
			continue
		}
		if s.names.Lookup(name) != nil || f.Pkg.Types.Scope().Lookup(name) != nil {
			r.At(spec.Pos, "ratelimit:import: the file knows the name %s already: write %simport %s2 %q", name, directive.Prefix, name, spec.Path)
			continue
		}
		s.extra = append(s.extra, types.NewPkgName(token.NoPos, f.Pkg.Types, name, p.Types))
	}
	return s
}

// Quiet returns a scope that reports nothing.
func (s *Scope) Quiet() *Scope {
	quiet := *s
	quiet.report = diag.NewReporter(s.report.Fset, "")
	return &quiet
}

// check checks an expression that must give one value, with m's parameters in
// scope, It reports what is wrong and returns nil.
func (s *Scope) check(option string, v directive.Value, m *Signature) *Expr {
	e := s.typed(option, v, m)
	if e == nil || !s.oneValue(e) || !s.reachable(e) {
		return nil
	}
	return e
}

// reporter returns the function that reports what is wrong with the value of
// an option.
func (s *Scope) reporter(option string) diag.Func {
	return func(pos token.Pos, format string, args ...any) *diag.Diagnostic {
		return s.report.At(pos, "%s: %s", option, fmt.Sprintf(format, args...))
	}
}

// refused reports what is wrong with an expression, and returns nil.
func (s *Scope) refused(e *Expr, format string, args ...any) *Expr {
	s.reporter(e.Option)(e.Source.Pos, format, args...).Mark(e.Source.Text)
	return nil
}

// typed parses an expression and checks its types. It reports what is wrong and
// returns nil.
func (s *Scope) typed(option string, v directive.Value, m *Signature) *Expr {
	e := &Expr{Option: option, Source: v, pkg: s.pkg, notNil: []*Param{m.Refusal, m.Receiver}, Params: map[*ast.Ident]*Param{}, Info: &types.Info{
		Types:      map[ast.Expr]types.TypeAndValue{},
		Uses:       map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
		Instances:  map[*ast.Ident]types.Instance{},
	}}
	report := s.reporter(option)
	text, marks, bad := blankMarks(v.Text)
	if bad >= 0 {
		report(v.At(bad), "# without a parameter's name: write #id, or #0 for the first parameter").Mark("#")
		return nil
	}
	node, err := parser.ParseExprFrom(s.report.Fset, "", text, parser.SkipObjectResolution)
	if err != nil {
		offset, msg := 0, err.Error()
		if list, ok := err.(scanner.ErrorList); ok {
			offset, msg = list[0].Pos.Offset, list[0].Msg
		}
		report(v.At(offset), "%q is not a Go expression: %s", v.Text, msg).Mark(v.Tail(offset))
		return nil
	}
	file := s.report.Fset.File(node.Pos())
	e.Node, e.base = node, token.Pos(file.Base())
	if !s.bindParams(e, marks, m, report) || !refuse(e, report) {
		return nil
	}
	if err := types.CheckExpr(s.report.Fset, s.pkg, s.scope(file, e, m), node, e.Info); err != nil {
		pos, msg := e.base, err.Error()
		if te, ok := err.(types.Error); ok {
			pos, msg = te.Pos, te.Msg
		}
		hint, instead := s.hint(e, pos, msg, m)
		report(e.at(pos), "%s%s", msg, hint).Mark(e.wordAt(pos)).ReplaceBy(instead)
		return nil
	}
	tv := e.Info.Types[node]
	e.Type, e.Const = tv.Type, tv.Value
	if tv.IsType() {
		return s.refused(e, "%s is a type, not a value", v.Text)
	}
	if !refuseTyped(e, report) {
		return nil
	}
	return e
}

// oneValue reports an expression that does not give one value.
func (s *Scope) oneValue(e *Expr) bool {
	tv := e.Info.Types[e.Node]
	one := tv.IsValue() && !tv.IsNil() && !isTuple(tv.Type)
	if !one {
		s.refused(e, "%s does not give one value", e.Source.Text)
	}
	return one
}

// IsFixed reports whether an expression gives the same constant for every
// method. The length of a parameter that is an array is constant, and differs
// from method to method.
func (e *Expr) IsFixed() bool { return e.Const != nil && len(e.Params) == 0 }

// Part checks a part of a key or a share and finds out how to write it. It reports one
// that cannot be written.
func (s *Scope) Part(option string, v directive.Value, m *Signature) *KeyPart {
	e := s.check(option, v, m)
	if e == nil {
		return nil
	}
	p := &KeyPart{Expr: e}
	t := e.Type
	add, convert := FormatOf(t)
	if ptr, ok := t.Underlying().(*types.Pointer); ok && add == "" {
		// A pointer to a part is the part, if there is one.
		if add, convert = FormatOf(ptr.Elem()); add != "" {
			e.dereference(ptr.Elem())
		}
	} else if add != "" && isNilable(t) {
		e.NotNil = true
	}
	if add == "" {
		s.refused(e, "%s is of type %s, which has no text: %s; select a field or call a method", e.Source.Text, e.typeName(), formattable)
	}
	if e.Const != nil && (add == "AddInt" || add == "AddUint") {
		n := constant.ToInt(e.Const)
		fits := add == "AddInt" && isInt64(n) || add == "AddUint" && isUint64(n)
		if !fits && isUint64(n) {
			add = "AddUint"
		} else if !fits {
			s.refused(e, "%s is too large for a part of a key: the integers are those of int64 and uint64", e.Source.Text)
		}
	}
	p.Add, p.Convert = add, convert
	return p
}

// Integer checks an expression that must give an integer that fits an int64.
func (s *Scope) Integer(option string, v directive.Value, m *Signature) *Expr {
	e := s.check(option, v, m)
	if e == nil {
		return nil
	}
	b, ok := e.Type.Underlying().(*types.Basic)
	isRune := ok && b.Kind() == types.UntypedRune
	if !ok || b.Info()&types.IsInteger == 0 || isRune {
		return s.refused(e, "%s is of type %s, not an integer", e.Source.Text, e.typeName())
	}
	if e.Const == nil && (b.Kind() == types.Uint || b.Kind() == types.Uint64 || b.Kind() == types.Uintptr) {
		return s.refused(e, "%s is of type %s, which may not fit an int64: convert it, as in int64(%s)", e.Source.Text, e.typeName(), e.Source.Text)
	}
	return e
}

// Text checks an expression that must give a string.
func (s *Scope) Text(option string, v directive.Value, m *Signature) *Expr {
	e := s.check(option, v, m)
	if e == nil {
		return nil
	}
	if !gotypes.IsBasic(e.Type, types.IsString) {
		return s.refused(e, "%s is of type %s, not a string", e.Source.Text, e.typeName())
	}
	return e
}

// Boolean checks an expression that must give a boolean that is not constant.
func (s *Scope) Boolean(option string, v directive.Value, m *Signature) *Expr {
	e := s.check(option, v, m)
	if e == nil {
		return nil
	}
	if !gotypes.IsBasic(e.Type, types.IsBoolean) {
		return s.refused(e, "%s is of type %s, not a boolean", e.Source.Text, e.typeName())
	}
	if e.Const != nil {
		return s.refused(e, "%s is always %s: remove the option, or the directive", e.Source.Text, e.Const)
	}
	return e
}

func isTuple(t types.Type) bool { _, ok := t.(*types.Tuple); return ok }
