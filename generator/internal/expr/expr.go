// Package expr checks the Go expressions of directives in the scope of their
// source file, and finds what has to be guarded so that they cannot panic.
package expr

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/load"
)

// A Signature is a method as its expressions see it.
type Signature struct {
	Name   string
	Params []*Param
}

// A Param is a parameter of a method.
type Param struct {
	Source string // its name in the interface; may be "" or "_"
	Type   types.Type
}

// An Expr is an expression of a directive that has passed the type checker.
type Expr struct {
	Option string          // whose value it is, or is a part of
	Source directive.Value // as it is written
	Node   ast.Expr        // with the variables of Guards
	Type   types.Type
	Const  constant.Value        // nil if it is not constant
	Info   *types.Info           // Types, Uses, Selections and Instances of Node
	Params map[*ast.Ident]*Param // the identifiers, called #id or #0, that are parameters
	Guards []*Guard              // to be checked before Node is evaluated, in this order

	base token.Pos      // of the first byte of Source.Text in Node's positions
	pkg  *types.Package // whose file it stands in
}

// typeName returns the type of the expression as its package would write it.
func (e *Expr) typeName() string {
	return types.TypeString(e.Type, func(p *types.Package) string {
		if p == e.pkg {
			return ""
		}
		return p.Name()
	})
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
		if s.names.Lookup(name) != nil || f.Pkg.Types.Scope().Lookup(name) != nil {
			r.At(spec.Pos, "ratelimit:import: the file knows the name %s already: write %simport %s2 %q", name, directive.Prefix, name, spec.Path)
			continue
		}
		s.extra = append(s.extra, types.NewPkgName(token.NoPos, f.Pkg.Types, name, p.Types))
	}
	return s
}

// check parses an expression and checks its types, with m's parameters in
// scope. It reports what is wrong and returns nil.
func (s *Scope) check(option string, v directive.Value, m *Signature) *Expr {
	e := &Expr{Option: option, Source: v, pkg: s.pkg, Params: map[*ast.Ident]*Param{}, Info: &types.Info{
		Types:      map[ast.Expr]types.TypeAndValue{},
		Uses:       map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
		Instances:  map[*ast.Ident]types.Instance{},
	}}
	report := func(pos token.Pos, format string, args ...any) *diag.Diagnostic {
		return s.report.At(pos, "%s: %s", option, fmt.Sprintf(format, args...))
	}
	text, marks, bad := blankMarks(v.Text)
	if bad >= 0 {
		report(v.At(bad), "# without a parameter's name: write #id, or #0 for the first parameter").Over("#")
		return nil
	}
	node, err := parser.ParseExprFrom(s.report.Fset, "", text, parser.SkipObjectResolution)
	if err != nil {
		offset, msg := 0, err.Error()
		if list, ok := err.(scanner.ErrorList); ok {
			offset, msg = list[0].Pos.Offset, list[0].Msg
		}
		report(v.At(offset), "%q is not a Go expression: %s", v.Text, msg).Over(v.Tail(offset))
		return nil
	}
	file := s.report.Fset.File(node.Pos())
	e.Node, e.base = node, token.Pos(file.Base())
	if !s.bindParams(e, marks, m, report) || !refuse(e, report) {
		return nil
	}
	if err := types.CheckExpr(s.report.Fset, s.pkg, s.scope(file, e), node, e.Info); err != nil {
		pos, msg := e.base, err.Error()
		if te, ok := err.(types.Error); ok {
			pos, msg = te.Pos, te.Msg
		}
		hint, instead := s.hint(e, pos, msg, m)
		report(e.at(pos), "%s%s", msg, hint).Over(e.wordAt(pos)).ReplaceBy(instead)
		return nil
	}
	tv := e.Info.Types[node]
	e.Type, e.Const = tv.Type, tv.Value
	switch {
	case tv.IsType():
		report(v.At(0), "%s is a type, not a value", v.Text).Over(v.Text)
		return nil
	case !tv.IsValue() || tv.IsNil() || isTuple(tv.Type):
		report(v.At(0), "%s does not give one value", v.Text).Over(v.Text)
		return nil
	}
	if !refuseTyped(e, report) {
		return nil
	}
	e.findGuards()
	if s.home != s.pkg && !refuseUnexported(e, s.home, report) {
		return nil
	}
	return e
}

func isTuple(t types.Type) bool { _, ok := t.(*types.Tuple); return ok }

// blankMarks makes Go of an expression without moving a byte: #id becomes id
// after a blank, #0 becomes _0. It returns the offsets of these identifiers,
// or the offset of a # that stands before no name.
func blankMarks(text string) (string, map[int]bool, int) {
	out, marks := []byte(text), map[int]bool{}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '`', '\'':
			if n := directive.QuoteEnd(text[i:]); n > 0 {
				i += n - 1
			}
		case '#':
			c, _ := utf8.DecodeRuneInString(text[i+1:])
			switch {
			case i+1 < len(text) && c >= '0' && c <= '9':
				out[i] = '_'
				marks[i] = true
			case i+1 < len(text) && (c == '_' || unicode.IsLetter(c)):
				out[i] = ' '
				marks[i+1] = true
			default:
				return "", nil, i
			}
		}
	}
	return string(out), marks, -1
}

// bindParams finds the parameters that the marked identifiers mean and gives
// these names that no Go identifier has.
func (s *Scope) bindParams(e *Expr, marks map[int]bool, m *Signature, report diag.Func) bool {
	ok := true
	ast.Inspect(e.Node, func(n ast.Node) bool {
		id, isIdent := n.(*ast.Ident)
		if !isIdent || !marks[int(id.Pos()-e.base)] {
			return true
		}
		name := id.Name
		i := slices.IndexFunc(m.Params, func(p *Param) bool { return p.Source == name && name != "_" })
		if digits, isNumber := strings.CutPrefix(name, "_"); isNumber && isDigits(digits) && e.Source.Text[id.Pos()-e.base] == '#' {
			name = digits
			if n, err := strconv.Atoi(digits); err == nil && n < len(m.Params) {
				i = n
			}
		}
		if i < 0 {
			var known []string
			for _, p := range m.Params {
				if p.Source != "" && p.Source != "_" {
					known = append(known, "#"+p.Source)
				}
			}
			near := directive.Nearest("#"+name, known)
			hint := ""
			switch {
			case near != "" && !isDigits(name):
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			case len(m.Params) == 0:
				near, hint = "", ": it has none"
			case len(known) == 0:
				near, hint = "", ": its parameters have no names, write #0 for the first"
			default:
				near, hint = "", ": it has "+strings.Join(known, ", ")
			}
			report(e.at(id.Pos()), "method %s has no parameter #%s%s", m.Name, name, hint).Over("#" + name).ReplaceBy(near)
			ok = false
			return true
		}
		id.Name = "#" + name
		e.Params[id] = m.Params[i]
		return true
	})
	return ok
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// scope makes a scope like that of the source file in which the parameters
// have their marked names, and returns a position inside of it.
func (s *Scope) scope(file *token.File, e *Expr) token.Pos {
	pkg := s.pkg
	scope := types.NewScope(pkg.Scope(), token.Pos(file.Base()), token.Pos(file.Base()+file.Size()+1), "directive")
	for _, name := range s.names.Names() {
		scope.Insert(s.names.Lookup(name))
	}
	for _, p := range s.extra {
		scope.Insert(p)
	}
	for id, p := range e.Params {
		scope.Insert(types.NewParam(token.NoPos, pkg, id.Name, p.Type))
	}
	return token.Pos(file.Base())
}
