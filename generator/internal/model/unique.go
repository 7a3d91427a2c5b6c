package model

import (
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/naming"
)

// isPath matches a parameter and what is selected of it.
var isPath = regexp.MustCompile(`^#[\pL\pN_]+(\.[\pL\pN_]+(\(\))?)*$`)

// warnUnique warns of a key with the address of a peer and its port, and of one that is a
// time: each connection, or each call, has another.
func (b *Builder) warnUnique(f *File, w *Wrapper) {
	warned := map[*Rule]bool{}
	for _, m := range w.Methods {
		for _, l := range m.Limits {
			for _, p := range slices.Concat(l.Parts, l.Share) {
				code, why := whyUnique(p.Expr, sourceOf(f, w, l.Rule.Pos))
				if why != "" && !warned[l.Rule] {
					warned[l.Rule] = true
					b.Report.Warn(code, p.Expr.Source.Pos, "%s: %s %s", p.Expr.Option, p.Expr.Source.Text, why).Mark(p.Expr.Source.Text)
				}
			}
		}
	}
}

// whyUnique says why a part of a key, in a source file, counts nobody twice, and what to write;
// or "".
func whyUnique(e *expr.Expr, src *directive.File) (diag.Code, string) {
	text, kind := e.Source.Text, addressKind(e.Type)
	if kind != "" {
		return diag.KeyWithPort, fmt.Sprintf("is a %s, which has the port of a connection, so each connection has a budget of its own: leave out the port, as netip.AddrPort.Addr does, or write %s.String() if that is meant", kind, text)
	}
	if isMoment(e) {
		return diag.KeyOfTime, "is another one at each moment, so each call has a budget of its own: write what calls that are to count together have in common, or a conversion of it if that is meant"
	}
	if !endsInRemoteAddr(e) {
		return "", ""
	}
	remedy := "call a function that leaves out the port"
	if request, ok := strings.CutSuffix(text, ".RemoteAddr"); ok && isPath.MatchString(request) {
		remedy = "write key=ratehttp.ClientIP(" + request + ".Context()) behind ratehttp.Middleware"
		if !src.HasImport(naming.HTTPPath) {
			remedy += ", with a line " + directive.Prefix + `import "` + naming.HTTPPath + `" in the file`
		}
	}
	return diag.KeyWithPort, fmt.Sprintf("has the port of a connection in it, so each connection has a budget of its own: %s, or string(%s) if that is meant", remedy, text)
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
			if results := obj.Signature().Results(); isCall && results.Len() == 1 && gotypes.IsNamed(results.At(0).Type(), "net", "Addr") {
				return true
			}
		}
	}
	return false
}

// addressKind returns the type of an address with a port, or "".
func addressKind(t types.Type) string {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	for _, kind := range []struct{ pkg, name string }{{"net/netip", "AddrPort"}, {"net", "Addr"}, {"net", "TCPAddr"}, {"net", "UDPAddr"}} {
		if gotypes.IsNamed(t, kind.pkg, kind.name) {
			return path.Base(kind.pkg) + "." + kind.name
		}
	}
	return ""
}

// isMoment reports whether an expression is a time, or the present one as a number.
func isMoment(e *expr.Expr) bool {
	call, ok := ast.Unparen(e.Node).(*ast.CallExpr)
	if !ok {
		return gotypes.IsNamed(e.Type, "time", "Time")
	}
	fun, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return !e.Info.Types[call.Fun].IsType() && // a conversion says that it is meant
		(gotypes.IsNamed(e.Type, "time", "Time") || ok && readsClock(e) && strings.HasPrefix(fun.Sel.Name, "Unix"))
}

// readsClock reports whether an expression depends on when it is evaluated.
func readsClock(e *expr.Expr) bool {
	for _, obj := range e.Info.Uses {
		if fn, ok := obj.(*types.Func); ok && fn.Pkg() != nil && fn.Pkg().Path() == "time" && fn.Name() == "Now" {
			return true
		}
	}
	return false
}
