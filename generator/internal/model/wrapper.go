package model

import (
	"cmp"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/load"
	"github.com/rategen/rategen/generator/internal/naming"
)

// A Wrapper is one decorator to be written.
type Wrapper struct {
	Decl        *directive.Decl
	Name        string // of the interface or the concrete type
	Wrapped     string // of the interface
	pkgName     string // of their package
	TypeName    string
	Constructor string
	TypeParams  *types.TypeParamList
	Serves      []*types.TypeName // interfaces of a concrete type's server, see [servesOf]
	Embeds      []*types.TypeName // interfaces that the wrapper embeds, see [Wrapper.embed]
	Rules       []*Rule           // in the order of their declaration
	Methods     []*Method
}

// A Method is a method of the wrapper.
type Method struct {
	expr.Signature
	Type     *types.Signature
	all      []*expr.Param // of Type
	explicit bool          // declared by the interface itself, not embedded
	// declaredBy is the interface that declares it, or nil if that has no name.
	declaredBy *types.TypeName
	pos        token.Pos
	unlimited  string   // the type that it hands out without limits, or ""
	wrapIn     string   // the constructor that gives it limits
	within     bool     // in a result, or to a callback
	usage      string   // the name of its [Method.Accessor], or ""
	Limits     []*Limit // that a call must pass
	Stream     *Stream  // that meter charges, or nil
	// Ctx gives the context of a limited call. It is nil if that is the parameter
	// [Method.Context], or if there is none.
	Ctx *expr.Expr
}

// EachExpr visits the expressions of a method that are evaluated with a call.
func (m *Method) EachExpr(visit func(*expr.Expr)) {
	for _, l := range m.Limits {
		l.EachExpr(visit)
	}
	if m.Ctx != nil {
		visit(m.Ctx)
	}
}

// IsSoft reports whether calls are told that they are over a limit.
func (m *Method) IsSoft() bool {
	return slices.ContainsFunc(m.Limits, func(l *Limit) bool { return l.Rule.IsSoft() })
}

// Settles reports whether a charge may change when the call is over.
func (m *Method) Settles() bool { return slices.ContainsFunc(m.Limits, (*Limit).Settles) }

// HasEnd reports whether something is evaluated when the call is over.
func (m *Method) HasEnd() bool { return slices.ContainsFunc(m.Limits, (*Limit).HasEnd) }

// Holds reports whether something is to be given back or settled when the call is over,
// however it ends.
func (m *Method) Holds() bool { return slices.ContainsFunc(m.Limits, (*Limit).IsHeld) }

// NextField returns the name of the field for the wrapped value. It is next
// unless a method has that name.
func (w *Wrapper) NextField() string { return w.field("next") }

// LimiterField returns the name of the field for the limiter.
func (w *Wrapper) LimiterField() string { return w.field("limiter") }

func (w *Wrapper) field(name string) string {
	taken := map[string]bool{}
	for _, m := range w.Methods {
		taken[m.Name] = true
	}
	return naming.Free(name, taken)
}

// IsShared reports whether a rule stands above the interface itself.
func (w *Wrapper) IsShared(r *Rule) bool {
	return slices.ContainsFunc(w.Decl.Own, func(d *directive.Directive) bool { return d.Settings == r.Settings })
}

// newWrapper reads an interface. It reports one that cannot be wrapped and
// returns nil.
func (b *Builder) newWrapper(f *File, decl *directive.Decl) *Wrapper {
	name := decl.Spec.Name
	obj := load.TypeOf(decl, f.Pkg.Types)
	if obj == nil {
		b.Report.At(name.Pos(), "type %s cannot be wrapped: package %s has no type of that name", name.Name, f.Pkg.Types.Path())
		return nil
	}
	iface, ok := obj.Type().Underlying().(*types.Interface)
	if named, isNamed := obj.Type().(*types.Named); !ok && isNamed && decl.Concrete != nil {
		iface, ok = gotypes.MethodsOf(named), true
	}
	if !ok {
		b.Report.At(name.Pos(), "type %s is not an interface: declare an interface and write the directive above it or its methods", name.Name)
		return nil
	}
	if !iface.IsMethodSet() {
		b.Report.At(name.Pos(), "interface %s is a type constraint, of which there are no values to wrap: remove the directive", name.Name)
		return nil
	}
	w := &Wrapper{Decl: decl, Name: name.Name, Wrapped: decl.InterfaceName(), pkgName: f.Pkg.Types.Name(), TypeName: decl.WrapperName(), Constructor: decl.ConstructorName()}
	switch t := obj.Type().(type) {
	case *types.Named:
		w.TypeParams = t.TypeParams()
	case *types.Alias:
		w.TypeParams = t.TypeParams()
	}
	order := directive.ExplicitOrder(decl.Spec)
	if decl.Concrete != nil {
		for i, m := range decl.Concrete.Methods {
			order[m] = i
		}
	}
	ok = true
	methods := slices.Collect(iface.Methods())
	if decl.Concrete != nil {
		declared := f.Pkg.Types.Scope().Lookup(name.Name) // nil in another package of the directory
		methods = append(methods, w.promoted(declared, f.Home)...)
		w.Serves = servesOf(declared, f.Home)
		methods = w.withServed(methods)
	}
	for _, fn := range methods {
		if w.embed(fn, f.Home) {
			continue
		}
		m := b.newMethod(f, w, fn)
		if m == nil {
			ok = false
			continue
		}
		_, m.explicit = order[m.Name]
		m.pos = posOf(fn, f.Pkg.Types)
		w.Methods = append(w.Methods, m)
	}
	slices.SortFunc(w.Methods, func(a, b *Method) int {
		return cmp.Or(cmp.Compare(orderOf(order, a.Name), orderOf(order, b.Name)), strings.Compare(a.Name, b.Name))
	})
	if !ok {
		return nil
	}
	w.findUnlimited(f)
	if f.Out != nil {
		b.checkReachable(f, w)
	}
	return w
}

// newMethod reads a method of an interface. It reports one that the generated
// file could not declare and returns nil.
func (b *Builder) newMethod(f *File, w *Wrapper, fn *types.Func) *Method {
	pos, sig := w.Decl.Spec.Name.Pos(), fn.Signature()
	if !fn.Exported() && fn.Pkg() != f.Home {
		b.Report.At(pos, "interface %s cannot be wrapped: its method %s is unexported in package %s; embed an interface without it", w.Name, fn.Name(), fn.Pkg().Path())
		return nil
	}
	if bad := unreachable(sig, f.Home); bad != nil {
		b.Report.At(pos, "interface %s cannot be wrapped: package %s cannot name the type %s.%s of method %s: declare the method in %s by an exported alias of that type, which a package has that may name it, or embed an interface without the method", w.Name, f.Home.Path(), bad.Pkg().Path(), bad.Name(), fn.Name(), w.Name)
		return nil
	}
	if hidden := hiddenType(sig, w.TypeParams, f.Home); hidden != "" {
		b.Report.At(pos, "interface %s cannot be wrapped: its type parameter %s hides the type %s of method %s; rename the parameter", w.Name, hidden, hidden, fn.Name())
		return nil
	}
	if name := f.hiddenType(sig); name != "" {
		b.Report.At(pos, "interface %s cannot be wrapped: package %s declares %s, and method %s needs the type of that name that Go declares; rename it, or embed an interface without the method", w.Name, f.Home.Path(), name, fn.Name())
		return nil
	}
	m := &Method{Signature: expr.Signature{Name: fn.Name()}, Type: sig, declaredBy: declaredBy(fn)}
	for p := range w.TypeParams.TypeParams() {
		m.Types = append(m.Types, p.Obj())
	}
	for p := range sig.Params().Variables() {
		m.Params = append(m.Params, &expr.Param{Source: p.Name(), Type: p.Type()})
	}
	m.all = m.Params
	for p := range sig.Results().Variables() {
		m.Results = append(m.Results, &expr.Param{Source: p.Name(), Type: p.Type()})
	}
	m.Refusal = &expr.Param{Source: "err", Type: types.Universe.Lookup("error").Type()}
	m.Receiver = w.receiverOf(m.Name, f.Pkg.Types)
	return m
}

func orderOf(order map[string]int, name string) int {
	if i, ok := order[name]; ok {
		return i
	}
	return len(order) + 1<<20 // embedded ones last
}

// unreachable returns a type in t that package from cannot name, or nil.
func unreachable(t types.Type, from *types.Package) *types.TypeName {
	var found *types.TypeName
	gotypes.EachName(t, func(obj *types.TypeName) {
		if p := obj.Pkg(); found == nil && p != nil && p != from && (!obj.Exported() || !gotypes.MayImport(from.Path(), p.Path())) {
			found = obj
		}
	})
	return found
}

// hiddenType returns the name of a type of the package that an embedded method
// uses and that a type parameter has too, or "".
func hiddenType(t types.Type, tparams *types.TypeParamList, from *types.Package) string {
	hidden := ""
	gotypes.EachName(t, func(obj *types.TypeName) {
		for p := range tparams.TypeParams() {
			if obj.Name() == p.Obj().Name() && (obj.Pkg() == from || obj.Pkg() == nil) {
				hidden = obj.Name()
			}
		}
	})
	return hidden
}
