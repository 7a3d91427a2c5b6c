package model

import (
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/load"
	"github.com/rategen/rategen/generator/internal/naming"
)

// declaredBy returns the interface, or the struct, that declares a method, or nil.
func declaredBy(fn *types.Func) *types.TypeName {
	recv := fn.Signature().Recv()
	if recv == nil {
		return nil
	}
	t := types.Unalias(recv.Type())
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	named, ok := t.(*types.Named)
	if !ok {
		return nil
	}
	if p := named.Obj().Pkg(); p != nil {
		if obj, ok := p.Scope().Lookup(load.StubbedType(named.Obj().Name())).(*types.TypeName); ok {
			return obj // by its interface
		}
	}
	return named.Obj()
}

// warnEmbedded warns of a type that embeds a limited one: the directives of that one
// are for its own wrapper. Methods that the type repeats are its own.
func (b *Builder) warnEmbedded(f *File, w *Wrapper) {
	dropped := map[*types.TypeName][]string{}
	var embedded []*types.TypeName
	for _, m := range w.Methods {
		obj := m.declaredBy
		if m.explicit || obj == nil || obj.Name() == w.Name && obj.Pkg() == f.Pkg.Types || !f.isLimited(obj, m.Name) {
			continue
		}
		if dropped[obj] == nil {
			embedded = append(embedded, obj)
		}
		dropped[obj] = append(dropped[obj], m.Name)
	}
	for _, obj := range embedded {
		name := obj.Name()
		if obj.Pkg() != f.Pkg.Types {
			name = obj.Pkg().Name() + "." + name
		}
		also, repeat := "", "repeat"
		if w.Decl.Concrete != nil {
			also, repeat = "embed that, or ", "declare"
		}
		b.Report.Warn(diag.EmbeddedLimits, w.Decl.Spec.Name.Pos(), "the limits of %s, which %s embeds, hold for its own wrapper and not for %s: %s%s %s in %s, with the directives that are to hold, or with none if that is meant",
			name, w.Name, w.TypeName, also, repeat, strings.Join(dropped[obj], ", "), w.Name)
	}
}

// isLimited reports whether an interface has a limit on a method. Of one of another
// package it is known whether it has a wrapper.
func (f *File) isLimited(obj *types.TypeName, method string) bool {
	if obj.Pkg() != f.Pkg.Types {
		return obj.Pkg() != nil && obj.Pkg().Scope().Lookup(naming.Wrapper(obj.Name())) != nil
	}
	decl := f.limited[obj.Name()]
	if decl == nil {
		return false
	}
	own := decl.Methods[method]
	if slices.ContainsFunc(own, func(d *directive.Directive) bool { return d.Off }) {
		return false
	}
	return len(own) > 0 || slices.ContainsFunc(settingsIn(decl.Own), func(s *directive.Settings) bool {
		return !s.LeavesOut(method)
	})
}

// isPath matches a parameter and what is selected of it.
var isPath = regexp.MustCompile(`^#[\pL\pN_]+(\.[\pL\pN_]+(\(\))?)*$`)

// warnRemoteAddr warns of a key with the address of a peer and its port: each
// connection has another.
func (b *Builder) warnRemoteAddr(f *File, w *Wrapper) {
	warned := map[*Rule]bool{}
	for _, m := range w.Methods {
		for _, l := range m.Limits {
			for _, p := range l.Parts {
				if !endsInRemoteAddr(p.Expr) || warned[l.Rule] {
					continue
				}
				warned[l.Rule] = true
				text := p.Expr.Source.Text
				remedy := "call a function that leaves out the port"
				if request, ok := strings.CutSuffix(text, ".RemoteAddr"); ok && isPath.MatchString(request) {
					remedy = "write key=ratehttp.ClientIP(" + request + ".Context()) behind ratehttp.Middleware"
					if !sourceOf(f, w, l.Rule.Pos).HasImport(naming.HTTPPath) {
						remedy += ", with a line " + directive.Prefix + `import "` + naming.HTTPPath + `" in the file`
					}
				}
				b.Report.Warn(diag.KeyWithPort, p.Expr.Source.Pos, "key: %s has the port of a connection in it, so each connection has a budget of its own: %s, or string(%s) if that is meant",
					text, remedy, text).Over(text)
			}
		}
	}
}

// endsInRemoteAddr reports whether an expression ends in the field RemoteAddr of a
// request, or is the text of a connection's RemoteAddr().
func endsInRemoteAddr(e *expr.Expr) bool {
	text := e.Source.Text
	isField, isCall := strings.HasSuffix(text, ".RemoteAddr"), strings.HasSuffix(text, ".RemoteAddr().String()")
	for id, obj := range e.Info.Uses {
		if id.Name != "RemoteAddr" || obj.Pkg() == nil {
			continue
		}
		switch obj := obj.(type) {
		case *types.Var:
			if isField && obj.Pkg().Path() == "net/http" {
				return true
			}
		case *types.Func:
			if results := obj.Signature().Results(); isCall && results.Len() == 1 && isNamed(results.At(0).Type(), "net", "Addr") {
				return true
			}
		}
	}
	return false
}
