package generator

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
)

// A checkedExpr is an expression of a directive that has passed the type
// checker. Its identifiers for parameters are still called #id or #0.
type checkedExpr struct {
	option string
	src    value
	node   ast.Expr
	typ    types.Type
	con    constant.Value // nil if it is not constant
	info   *types.Info
	params map[*ast.Ident]*param
	guards []*guard
	base   token.Pos // of the first byte of src.text in node's positions
	pkg    *types.Package
}

// typeName returns the type of the expression as its package would write it.
func (e *checkedExpr) typeName() string {
	return types.TypeString(e.typ, func(p *types.Package) string {
		if p == e.pkg {
			return ""
		}
		return p.Name()
	})
}

// An exprScope checks expressions as if they stood in a source file.
type exprScope struct {
	run   *run
	file  *checkedFile
	names *types.Scope // of the source file
	extra []*types.PkgName
}

func newExprScope(r *run, f *checkedFile) *exprScope {
	s := &exprScope{run: r, file: f, names: f.pkg.TypesInfo.Scopes[f.syntax]}
	for _, spec := range f.src.imports {
		p := f.pkg.Imports[spec.path]
		if p == nil || p.Types == nil {
			r.at(spec.pos, "ratelimit:import: package %s cannot be imported: check its path, and go.mod", spec.path)
			continue
		}
		name := spec.name
		if name == "" {
			name = p.Types.Name()
		}
		if s.names.Lookup(name) != nil || f.pkg.Types.Scope().Lookup(name) != nil {
			r.at(spec.pos, "ratelimit:import: the file knows the name %s already: write %simport %s2 %q", name, directivePrefix, name, spec.path)
			continue
		}
		s.extra = append(s.extra, types.NewPkgName(token.NoPos, f.pkg.Types, name, p.Types))
	}
	return s
}

// check parses an expression and checks its types, with m's parameters in
// scope. It reports what is wrong and returns nil.
func (s *exprScope) check(option string, v value, m *method) *checkedExpr {
	e := &checkedExpr{option: option, src: v, pkg: s.file.pkg.Types, params: map[*ast.Ident]*param{}, info: &types.Info{
		Types:      map[ast.Expr]types.TypeAndValue{},
		Uses:       map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
		Instances:  map[*ast.Ident]types.Instance{},
	}}
	report := func(pos token.Pos, format string, args ...any) *Diagnostic {
		return s.run.at(pos, "%s: %s", option, fmt.Sprintf(format, args...))
	}
	text, marks, bad := blankMarks(v.text)
	if bad >= 0 {
		report(v.at(bad), "# without a parameter's name: write #id, or #0 for the first parameter").over("#")
		return nil
	}
	node, err := parser.ParseExprFrom(s.run.fset, "", text, parser.SkipObjectResolution)
	if err != nil {
		offset, msg := 0, err.Error()
		if list, ok := err.(scanner.ErrorList); ok {
			offset, msg = list[0].Pos.Offset, list[0].Msg
		}
		report(v.at(offset), "%q is not a Go expression: %s", v.text, msg).over(v.tail(offset))
		return nil
	}
	file := s.run.fset.File(node.Pos())
	e.node, e.base = node, token.Pos(file.Base())
	if !s.bindParams(e, marks, m, report) || !refuse(e, report) {
		return nil
	}
	if err := types.CheckExpr(s.run.fset, s.file.pkg.Types, s.scope(file, e), node, e.info); err != nil {
		pos, msg := e.base, err.Error()
		if te, ok := err.(types.Error); ok {
			pos, msg = te.Pos, te.Msg
		}
		hint, instead := s.hint(e, pos, msg, m)
		report(e.at(pos), "%s%s", msg, hint).over(e.wordAt(pos)).replaceBy(instead)
		return nil
	}
	tv := e.info.Types[node]
	e.typ, e.con = tv.Type, tv.Value
	switch {
	case tv.IsType():
		report(v.at(0), "%s is a type, not a value", v.text).over(v.text)
		return nil
	case !tv.IsValue() || tv.IsNil() || isTuple(tv.Type):
		report(v.at(0), "%s does not give one value", v.text).over(v.text)
		return nil
	}
	if !refuseTyped(e, report) {
		return nil
	}
	e.findGuards()
	if home := s.file.home; home != s.file.pkg.Types && !refuseUnexported(e, home, report) {
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
			if n := quoteEnd(text[i:]); n > 0 {
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
func (s *exprScope) bindParams(e *checkedExpr, marks map[int]bool, m *method, report reportFunc) bool {
	ok := true
	ast.Inspect(e.node, func(n ast.Node) bool {
		id, isIdent := n.(*ast.Ident)
		if !isIdent || !marks[int(id.Pos()-e.base)] {
			return true
		}
		name := id.Name
		i := slices.IndexFunc(m.params, func(p *param) bool { return p.source == name && name != "_" })
		if digits, isNumber := strings.CutPrefix(name, "_"); isNumber && isDigits(digits) && e.src.text[id.Pos()-e.base] == '#' {
			name = digits
			if n, err := strconv.Atoi(digits); err == nil && n < len(m.params) {
				i = n
			}
		}
		if i < 0 {
			var known []string
			for _, p := range m.params {
				if p.source != "" && p.source != "_" {
					known = append(known, "#"+p.source)
				}
			}
			near := nearest("#"+name, known)
			hint := ""
			switch {
			case near != "" && !isDigits(name):
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			case len(m.params) == 0:
				near, hint = "", ": it has none"
			case len(known) == 0:
				near, hint = "", ": its parameters have no names, write #0 for the first"
			default:
				near, hint = "", ": it has "+strings.Join(known, ", ")
			}
			report(e.at(id.Pos()), "method %s has no parameter #%s%s", m.name, name, hint).over("#" + name).replaceBy(near)
			ok = false
			return true
		}
		id.Name = "#" + name
		e.params[id] = m.params[i]
		return true
	})
	return ok
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// scope makes a scope like that of the source file in which the parameters
// have their marked names, and returns a position inside of it.
func (s *exprScope) scope(file *token.File, e *checkedExpr) token.Pos {
	pkg := s.file.pkg.Types
	scope := types.NewScope(pkg.Scope(), token.Pos(file.Base()), token.Pos(file.Base()+file.Size()+1), "directive")
	for _, name := range s.names.Names() {
		scope.Insert(s.names.Lookup(name))
	}
	for _, p := range s.extra {
		scope.Insert(p)
	}
	for id, p := range e.params {
		scope.Insert(types.NewParam(token.NoPos, pkg, id.Name, p.typ))
	}
	return token.Pos(file.Base())
}
