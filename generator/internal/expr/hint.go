package expr

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/load"
	"github.com/rategen/rategen/internal/nearest"
)

// at returns the place in the source file of a place in the expression.
func (e *Expr) at(pos token.Pos) token.Pos { return e.Source.At(e.offset(pos)) }

// offset returns the byte of the expression's text that pos means.
func (e *Expr) offset(pos token.Pos) int {
	i := min(max(0, int(pos-e.base)), len(e.Source.Text))
	if i > 0 && e.Source.Text[i-1] == '#' {
		i-- // the mark belongs to the name
	}
	return i
}

// textOf returns a part of the expression as it is written in the source
// file, or "" if it is not written there byte by byte.
func (e *Expr) textOf(n ast.Node) string {
	if !e.Source.Exact {
		return ""
	}
	from := e.offset(n.Pos())
	return e.Source.Text[from:max(from, min(int(n.End()-e.base), len(e.Source.Text)))]
}

var leadingName = regexp.MustCompile(`^[\pL_][\pL\pN_]*`)

// wordAt returns the name at a place in the expression, with its mark, or "".
func (e *Expr) wordAt(pos token.Pos) string {
	if !e.Source.Exact {
		return ""
	}
	text := e.Source.Text[e.offset(pos):]
	bare := strings.TrimPrefix(text, "#")
	return text[:len(text)-len(bare)] + leadingName.FindString(bare)
}

// hint says what was probably meant where the type checker does not know a
// name, and what to write in its place.
func (s *Scope) hint(e *Expr, pos token.Pos, msg string, m *Signature) (hint, instead string) {
	var candidates []string
	params := map[string]bool{}
	name := strings.TrimPrefix(e.wordAt(pos), "#")
	sel := selectorAt(e.Node, pos)
	undefined, isName := strings.CutPrefix(msg, "undefined: ")
	switch {
	case isName && !strings.Contains(undefined, "."):
		name = undefined
		if len(m.meant(name)) == 1 {
			return fmt.Sprintf(" (did you mean #%s?)", name), "#" + name
		}
		for _, known := range m.known() {
			params[known[1:]] = true
			candidates = append(candidates, known[1:])
		}
		candidates = slices.Concat(candidates, s.names.Names(), s.pkg.Scope().Names())
	case sel == nil || !isName && !strings.Contains(msg, "no field or method"):
		return "", ""
	case isName:
		if id, ok := sel.X.(*ast.Ident); ok {
			candidates = exportedNames(s.packageNamed(id.Name))
		}
	default:
		candidates = s.members(e.Info.Types[sel.X].Type)
	}
	candidates = slices.DeleteFunc(candidates, func(c string) bool { return strings.HasPrefix(c, load.StubPrefix) })
	near := nearest.Name(name, candidates)
	if near == "" && isQualifier(e.Node, pos) {
		return fmt.Sprintf(": a package that only directives use needs a line %simport %q in the file", directive.Prefix, s.pathNamed(name)), ""
	}
	if near == "" || strings.Contains(msg, "but does have") { // the type checker's own hint
		return "", near
	}
	if params[near] {
		near = "#" + near
	}
	return fmt.Sprintf(" (did you mean %q?)", near), near
}

// isQualifier reports whether the name at pos stands before a dot.
func isQualifier(node ast.Node, pos token.Pos) bool {
	found := false
	ast.Inspect(node, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.X.Pos() == pos {
			_, isName := sel.X.(*ast.Ident)
			found = found || isName
		}
		return !found
	})
	return found
}

// pathNamed returns the path of a package that another file of the package imports, or
// else the name, which is a path in the standard library.
func (s *Scope) pathNamed(name string) string {
	for _, p := range s.pkg.Imports() {
		if p.Name() == name {
			return p.Path()
		}
	}
	return name
}

// selectorAt returns the selector whose selected name is at pos, or nil.
func selectorAt(node ast.Node, pos token.Pos) *ast.SelectorExpr {
	var found *ast.SelectorExpr
	ast.Inspect(node, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Pos() == pos {
			found = sel
		}
		return found == nil
	})
	return found
}

// packageNamed returns the package that a name means in the source file.
func (s *Scope) packageNamed(name string) *types.Package {
	for _, p := range s.extra {
		if p.Name() == name {
			return p.Imported()
		}
	}
	if p, ok := s.names.Lookup(name).(*types.PkgName); ok {
		return p.Imported()
	}
	return nil
}

func exportedNames(p *types.Package) []string {
	if p == nil {
		return nil
	}
	return slices.DeleteFunc(p.Scope().Names(), func(name string) bool { return !ast.IsExported(name) })
}

// members returns the fields and methods that an expression in the package may
// select from a value of type t, outer ones first.
func (s *Scope) members(t types.Type) []string {
	var names []string
	add := func(obj types.Object) {
		if obj.Exported() || obj.Pkg() == s.pkg {
			names = append(names, obj.Name())
		}
	}
	seen := map[types.Type]bool{}
	for level := []types.Type{t}; len(level) > 0; {
		var next []types.Type
		for _, t := range level {
			if t == nil || seen[t] {
				continue
			}
			seen[t] = true
			base := t
			if p, ok := t.Underlying().(*types.Pointer); ok {
				base = p.Elem()
			}
			if struc, ok := base.Underlying().(*types.Struct); ok {
				for f := range struc.Fields() {
					add(f)
					if f.Embedded() {
						next = append(next, f.Type())
					}
				}
			}
			methods := types.NewMethodSet(base)
			if !types.IsInterface(base) {
				methods = types.NewMethodSet(types.NewPointer(base))
			}
			for sel := range methods.Methods() {
				add(sel.Obj())
			}
		}
		level = next
	}
	return names
}
