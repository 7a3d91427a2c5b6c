package emit

import (
	"go/ast"
	"go/printer"
	"go/token"
	"go/types"
	"reflect"
	"strings"

	"github.com/rategen/rategen/generator/internal/expr"
)

// text writes an expression with the names of the generated file.
func (e *emitter) text(x *expr.Expr, names *nameSet) string { return e.nodeText(x, x.Node, names) }

// nodeText writes a part of an expression. What steps have put into variables
// is written as these.
func (e *emitter) nodeText(x *expr.Expr, n ast.Expr, names *nameSet) string {
	return e.print(x, n, names, false)
}

// headerText is like nodeText for the head of an if statement.
func (e *emitter) headerText(x *expr.Expr, n ast.Expr, names *nameSet) string {
	return e.print(x, n, names, true)
}

func (e *emitter) print(x *expr.Expr, n ast.Expr, names *nameSet, header bool) string {
	replace := func(n ast.Expr) string {
		if name := names.bind(n); name != "" {
			return name
		}
		id, ok := n.(*ast.Ident)
		if !ok {
			return ""
		}
		if p := x.Params[id]; p != nil {
			return names.params[p]
		}
		switch obj := x.Info.Uses[id].(type) {
		case nil:
		case *types.PkgName:
			return e.imports.name(obj.Imported().Path())
		default:
			if expr.IsPackageLevel(obj) && obj.Pkg() != e.imports.own { // a dot import
				return e.imports.name(obj.Pkg().Path()) + "." + obj.Name()
			}
		}
		return ""
	}
	if name := replace(n); name != "" { // as most are
		return name
	}
	c := copier{replace}
	var text strings.Builder
	printer.Fprint(&text, token.NewFileSet(), c.copy(reflect.ValueOf(n), header).Interface())
	return text.String()
}

// A copier copies syntax, replacing expressions by names.
type copier struct{ replace func(ast.Expr) string }

// copy copies a node or a part of one. If open is set it is to stand in the
// head of a statement, where a composite literal needs parentheses.
func (c copier) copy(v reflect.Value, open bool) reflect.Value {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		return c.copy(v.Elem(), open)
	case reflect.Slice:
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(c.copy(v.Index(i), open))
		}
		return out
	case reflect.Pointer:
		n, ok := v.Interface().(ast.Node)
		if !ok || v.IsNil() {
			return v
		}
		if x, ok := n.(ast.Expr); ok {
			if name := c.replace(x); name != "" {
				return reflect.ValueOf(&ast.Ident{NamePos: x.Pos(), Name: name})
			}
		}
		out := reflect.New(v.Type().Elem())
		for i := range v.Elem().NumField() {
			field, name := v.Elem().Field(i), v.Elem().Type().Field(i).Name
			if name != "Sel" { // which is found through what it is selected from
				field = c.copy(field, open && isOpen(n, name))
			}
			out.Elem().Field(i).Set(field)
		}
		if lit, ok := out.Interface().(*ast.CompositeLit); ok && open && hasTypeName(lit) {
			return reflect.ValueOf(&ast.ParenExpr{X: lit})
		}
		return out
	}
	return v
}

// isOpen reports whether a field of a node stands in no brackets of the node's.
func isOpen(n ast.Node, field string) bool {
	switch n.(type) {
	case *ast.ParenExpr:
		return false
	case *ast.CallExpr:
		return field == "Fun"
	case *ast.IndexExpr, *ast.IndexListExpr:
		return field == "X"
	case *ast.CompositeLit:
		return field == "Type"
	}
	return true
}

// hasTypeName reports whether the type of a composite literal ends in a name,
// so that its brace could begin a block.
func hasTypeName(lit *ast.CompositeLit) bool {
	switch lit.Type.(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr, *ast.IndexListExpr:
		return true
	}
	return false
}
