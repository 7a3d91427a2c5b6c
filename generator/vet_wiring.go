package generator

import (
	"go/ast"
	"go/types"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/model"
)

// A wiring is how a package uses its limited types. Only a caller of [Vet] knows: a run does
// not look into functions.
type wiring struct {
	Package
	report *diag.Reporter
}

// warn warns of wrappers that nobody can have, and of limited methods that are passed on
// without their limits. It sees no call of a method: the type itself may make it.
func (w wiring) warn(files []*model.File) {
	if w.Info.Uses == nil || w.Info.Selections == nil {
		return
	}
	used := map[types.Object]bool{}
	for _, obj := range w.Info.Uses {
		used[obj] = true
	}
	limited := map[types.Object]*model.Wrapper{}
	for _, f := range files {
		for _, wrapper := range f.Wrappers {
			construct := w.Types.Scope().Lookup(wrapper.Constructor)
			if construct != nil && !used[construct] && (!construct.Exported() || w.Types.Name() == "main") {
				w.report.Warn(diag.NotWired, wrapper.Decl.Spec.Name.Pos(), "%s is called nowhere in the package, and no other can call it, so these limits hold nothing: call it where the %s is made",
					wrapper.Constructor, wrapper.Name).Mark(wrapper.Name)
			}
			if wrapper.Decl.Concrete != nil {
				limited[w.Types.Scope().Lookup(wrapper.Name)] = wrapper
			}
		}
	}
	for _, file := range w.Files {
		if name := w.Fset.Position(file.Package).Filename; len(limited) == 0 || isGeneratedByUs(file) || strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); !ok || !w.isMethodOf(fn, limited) {
				w.warnValues(decl, limited)
			}
		}
	}
}

// isMethodOf reports whether a function is a method of one of the types.
func (w wiring) isMethodOf(fn *ast.FuncDecl, limited map[types.Object]*model.Wrapper) bool {
	obj, ok := w.Info.Defs[fn.Name].(*types.Func)
	return ok && obj.Signature().Recv() != nil && limited[typeNameOf(obj.Signature().Recv().Type())] != nil
}

// warnValues warns of methods that are values and not called: a router gets them, say.
func (w wiring) warnValues(decl ast.Decl, limited map[types.Object]*model.Wrapper) {
	called := map[ast.Expr]bool{}
	ast.Inspect(decl, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			called[ast.Unparen(call.Fun)] = true
		}
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || called[sel] {
			return true
		}
		selection := w.Info.Selections[sel]
		if selection == nil || selection.Kind() != types.MethodVal {
			return true
		}
		if wrapper := limited[typeNameOf(selection.Recv())]; wrapper != nil && isLimitedMethod(wrapper, sel.Sel.Name) {
			w.report.Warn(diag.NotWired, sel.Sel.Pos(), "%s of %s is passed on without its limits: pass on that of %s(…, limiter), or a function that calls it if that is meant",
				sel.Sel.Name, wrapper.Name, wrapper.Constructor).Mark(sel.Sel.Name)
		}
		return true
	})
}

func isLimitedMethod(w *model.Wrapper, name string) bool {
	for _, m := range w.Methods {
		if m.Name == name {
			return len(m.Limits) > 0
		}
	}
	return false
}

// typeNameOf returns the type that a value, or what it points to, has a name of, or nil.
func typeNameOf(t types.Type) types.Object {
	if named := gotypes.Named(t); named != nil {
		return named.Obj()
	}
	return nil
}
