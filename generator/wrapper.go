package generator

import (
	"cmp"
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"
)

// A wrapper is one decorator to be written.
type wrapper struct {
	decl        *ifaceDecl
	name        string // of the interface or the concrete type
	wrapped     string // of the interface
	pkgName     string // of their package
	typeName    string
	constructor string
	tparams     *types.TypeParamList
	limits      []*limit // in the order of their declaration
	methods     []*method
}

// A method is a method of the wrapper.
type method struct {
	name     string
	sig      *types.Signature
	explicit bool // declared by the interface itself, not embedded
	params   []*param
	uses     []*use // the limits that a call must pass
}

// A param is a parameter of a method.
type param struct {
	source string // its name in the interface; may be "" or "_"
	typ    types.Type
}

// nextField and limiterField are the fields of the wrapper. A method may have
// the name that they would have.
func (w *wrapper) nextField() string    { return w.field("next") }
func (w *wrapper) limiterField() string { return w.field("limiter") }

func (w *wrapper) field(name string) string {
	taken := map[string]bool{}
	for _, m := range w.methods {
		taken[m.name] = true
	}
	return free(name, taken)
}

// newWrapper reads an interface. It reports one that cannot be wrapped and
// returns nil.
func (r *run) newWrapper(f *checkedFile, decl *ifaceDecl) *wrapper {
	name := decl.spec.Name
	obj := decl.declared(f.pkg.Types)
	if obj == nil {
		r.at(name.Pos(), "type %s cannot be wrapped: package %s has no type of that name", name.Name, f.pkg.Types.Path())
		return nil
	}
	iface, ok := obj.Type().Underlying().(*types.Interface)
	if named, isNamed := obj.Type().(*types.Named); !ok && isNamed && decl.concrete != nil {
		iface, ok = methodsOf(named), true
	}
	if !ok {
		r.at(name.Pos(), "type %s is not an interface: declare an interface and write the directive above it or its methods", name.Name)
		return nil
	}
	if !iface.IsMethodSet() {
		r.at(name.Pos(), "interface %s is a type constraint, of which there are no values to wrap: remove the directive", name.Name)
		return nil
	}
	w := &wrapper{decl: decl, name: name.Name, wrapped: decl.interfaceName(), pkgName: f.pkg.Types.Name(), typeName: wrapperName(name.Name), constructor: constructorName(name.Name)}
	switch t := obj.Type().(type) {
	case *types.Named:
		w.tparams = t.TypeParams()
	case *types.Alias:
		w.tparams = t.TypeParams()
	}
	order := explicitOrder(decl.spec)
	if decl.concrete != nil {
		for i, m := range decl.concrete.methods {
			order[m] = i
		}
	}
	ok = true
	for i := range iface.NumMethods() {
		fn := iface.Method(i)
		sig := fn.Signature()
		if !fn.Exported() && fn.Pkg() != f.home {
			r.at(name.Pos(), "interface %s cannot be wrapped: its method %s is unexported in package %s; embed an interface without it", name.Name, fn.Name(), fn.Pkg().Path())
			ok = false
			continue
		}
		if bad := unreachable(sig, f.home); bad != nil {
			r.at(name.Pos(), "interface %s cannot be wrapped: package %s cannot name the type %s.%s of method %s; declare an exported alias of it in a package that may, or embed an interface without the method", name.Name, f.home.Path(), bad.Pkg().Path(), bad.Name(), fn.Name())
			ok = false
			continue
		}
		if hidden := hiddenType(sig, w.tparams, f.home); hidden != "" {
			r.at(name.Pos(), "interface %s cannot be wrapped: its type parameter %s hides the type %s of method %s; rename the parameter", name.Name, hidden, hidden, fn.Name())
			ok = false
			continue
		}
		_, explicit := order[fn.Name()]
		m := &method{name: fn.Name(), sig: sig, explicit: explicit}
		for p := range sig.Params().Variables() {
			m.params = append(m.params, &param{source: p.Name(), typ: p.Type()})
		}
		w.methods = append(w.methods, m)
	}
	slices.SortFunc(w.methods, func(a, b *method) int {
		return cmp.Or(cmp.Compare(orderOf(order, a.name), orderOf(order, b.name)), strings.Compare(a.name, b.name))
	})
	if !ok {
		return nil
	}
	if f.home != f.pkg.Types {
		r.checkReachable(f, w)
	}
	return w
}

// explicitOrder numbers the methods that an interface declares itself.
func explicitOrder(spec *ast.TypeSpec) map[string]int {
	order := map[string]int{}
	if t, ok := spec.Type.(*ast.InterfaceType); ok {
		for i, field := range t.Methods.List {
			for _, n := range field.Names {
				order[n.Name] = i
			}
		}
	}
	return order
}

func orderOf(order map[string]int, name string) int {
	if i, ok := order[name]; ok {
		return i
	}
	return len(order) + 1<<20 // embedded ones last
}

// returnsError reports whether a method's last result is an error.
func (m *method) returnsError() bool {
	n := m.sig.Results().Len()
	return n > 0 && types.Identical(m.sig.Results().At(n-1).Type(), types.Universe.Lookup("error").Type())
}

// unreachable returns a type in t that package from cannot name, or nil.
func unreachable(t types.Type, from *types.Package) *types.TypeName {
	var found *types.TypeName
	eachName(t, map[types.Type]bool{}, func(obj *types.TypeName) {
		if p := obj.Pkg(); found == nil && p != nil && p != from && (!obj.Exported() || !mayImport(from.Path(), p.Path())) {
			found = obj
		}
	})
	return found
}

// hiddenType returns the name of a type of the package that an embedded method
// uses and that a type parameter has too, or "".
func hiddenType(t types.Type, tparams *types.TypeParamList, from *types.Package) string {
	hidden := ""
	eachName(t, map[types.Type]bool{}, func(obj *types.TypeName) {
		for p := range tparams.TypeParams() {
			if obj.Name() == p.Obj().Name() && (obj.Pkg() == from || obj.Pkg() == nil) {
				hidden = obj.Name()
			}
		}
	})
	return hidden
}

// mayImport applies the rule on internal packages. Packages of the standard
// library and of other modules meet it already when they are imported.
func mayImport(from, target string) bool {
	parent := ""
	switch i := strings.LastIndex(target, "/internal/"); {
	case i >= 0:
		parent = target[:i]
	case strings.HasSuffix(target, "/internal"):
		parent = path.Dir(target)
	case strings.HasPrefix(target, "internal/"), target == "internal":
		return false
	default:
		return true
	}
	from = strings.TrimSuffix(from, "_test")
	return from == parent || strings.HasPrefix(from, parent+"/")
}

// eachName calls visit for every type name that writing t needs.
func eachName(t types.Type, seen map[types.Type]bool, visit func(*types.TypeName)) {
	eachType(t, seen, func(t types.Type) {
		switch t := t.(type) {
		case *types.Named:
			visit(t.Obj())
		case *types.Alias:
			visit(t.Obj())
		}
	})
}

// eachType calls visit for every type that writing t needs.
func eachType(t types.Type, seen map[types.Type]bool, visit func(types.Type)) {
	if seen[t] {
		return
	}
	seen[t] = true
	visit(t)
	each := func(t types.Type) { eachType(t, seen, visit) }
	switch t := t.(type) {
	case *types.Named:
		for a := range t.TypeArgs().Types() {
			each(a)
		}
	case *types.Alias:
		for a := range t.TypeArgs().Types() {
			each(a)
		}
	case *types.Pointer:
		each(t.Elem())
	case *types.Slice:
		each(t.Elem())
	case *types.Array:
		each(t.Elem())
	case *types.Chan:
		each(t.Elem())
	case *types.Map:
		each(t.Key())
		each(t.Elem())
	case *types.Signature:
		for v := range t.Params().Variables() {
			each(v.Type())
		}
		for v := range t.Results().Variables() {
			each(v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			each(f.Type())
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			each(m.Type())
		}
		for e := range t.EmbeddedTypes() {
			each(e)
		}
	case *types.Union:
		for e := range t.Terms() {
			each(e.Type())
		}
	}
}
