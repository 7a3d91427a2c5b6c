package emit

import (
	"go/ast"
	"go/types"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/internal/spec"
)

// An importSet chooses the names under which a generated file imports
// packages: those of the source file where it has one.
type importSet struct {
	own    *types.Package
	used   map[string]string // path to the package's own name
	source map[string]string // path to its name in the source file
	names  map[string]string // path to the chosen name, once settled
}

func newImportSet(f *model.File) *importSet {
	s := &importSet{own: f.Home, used: map[string]string{}, source: map[string]string{}}
	for _, spec := range f.Source.Syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err == nil && spec.Name != nil && spec.Name.Name != "_" && spec.Name.Name != "." {
			if _, twice := s.source[p]; !twice {
				s.source[p] = spec.Name.Name
			}
		}
	}
	return s
}

// collectImports finds the packages that the file needs and settles their
// names.
func (e *emitter) collectImports() {
	s := e.imports
	taken := map[string]bool{"_": true}
	maps.Copy(taken, e.file.DeclaredNames())
	s.use(naming.RuntimePath, "runtime")
	useType := func(t types.Type) {
		types.TypeString(t, func(p *types.Package) string { s.usePackage(p); return "" })
	}
	for _, name := range types.Universe.Names() { // types of embedded methods may need them
		taken[name] = true
	}
	for _, w := range e.file.Wrappers {
		if w.Decl.Concrete == nil || w.TypeParams.Len() == 0 || w.UsesReceiver() { // else no name of its own is written
			s.usePackage(e.file.Pkg.Types)
		}
		for p := range w.TypeParams.TypeParams() {
			taken[p.Obj().Name()] = true
			useType(p.Constraint())
		}
		for _, obj := range slices.Concat(w.Serves, w.Embeds) {
			useType(obj.Type())
		}
		for _, r := range w.Rules {
			if r.Period() == spec.NoUnit && r.Constants["window"] == nil || r.Measured() {
				s.use("time", "time")
			}
			taken[r.VarName] = true
			for _, field := range r.Fields() {
				if r.Constants[field.Option] == nil {
					s.useCode(field.Code)
				}
			}
			for _, x := range r.Constants {
				s.useExpr(x)
			}
			if r.Max != nil {
				s.useExpr(r.Max)
			}
		}
		if w.Informs() {
			s.use("context", "context")
		}
		for _, m := range w.Methods {
			useType(m.Type)
			if len(m.Limits) == 0 {
				continue
			}
			if m.Stream != nil {
				useType(m.Message.Type)
			}
			if m.NeedsBackground() {
				s.use("context", "context")
			}
			if slices.ContainsFunc(m.Limits, func(l *model.Limit) bool { return l.Hold != nil || l.Rule.IsSoft() || l.Rule.Measured() }) {
				s.use(naming.WrapperPath, "wrapper")
			}
			if _, request := m.Handler(); request != nil && slices.ContainsFunc(m.Limits, func(l *model.Limit) bool { return l.Deny == nil }) {
				s.use(naming.HTTPPath, "ratehttp")
			}
			m.EachExpr(s.useExpr)
		}
	}
	s.settle(taken)
}

// use adds a package.
func (s *importSet) use(pkgPath, name string) { s.used[pkgPath] = name }

// usePackage adds a package unless it is the file's own.
func (s *importSet) usePackage(p *types.Package) {
	if p != nil && p != s.own {
		s.use(p.Path(), p.Name())
	}
}

// settle chooses the names, avoiding those taken.
func (s *importSet) settle(taken map[string]bool) {
	s.names = map[string]string{}
	for _, p := range s.sorted() {
		name, renamed := s.source[p]
		if !renamed {
			name = s.used[p]
		}
		if isOurs(p) && taken[name] && !renamed && !strings.HasPrefix(name, "rate") {
			name = "rate" + name
		}
		s.names[p] = naming.Free(name, taken)
		taken[s.names[p]] = true
	}
}

// isOurs reports whether a package is one of rategen's own.
func isOurs(path string) bool {
	return path == naming.RuntimePath || strings.HasPrefix(path, naming.RuntimePath+"/")
}

// sorted returns the paths, those that the source file names first, ours
// last, so that it is ours that gives way.
func (s *importSet) sorted() []string {
	var paths []string
	for p := range s.used {
		paths = append(paths, p)
	}
	rank := func(p string) string {
		_, named := s.source[p]
		if named {
			return "0" + p
		}
		if isOurs(p) {
			return "2" + p
		}
		return "1" + p
	}
	slices.SortFunc(paths, func(a, b string) int { return strings.Compare(rank(a), rank(b)) })
	return paths
}

// name returns the name of an imported package.
func (s *importSet) name(pkgPath string) string { return s.names[pkgPath] }

// qualifier qualifies the names of types.
func (s *importSet) qualifier(p *types.Package) string {
	if p == s.own {
		return ""
	}
	return s.name(p.Path())
}

// typeString writes a type as the generated file has to write it.
func (s *importSet) typeString(t types.Type) string { return types.TypeString(t, s.qualifier) }

func (s *importSet) typeCode(t types.Type) *jen.Statement { return jen.Op(s.typeString(t)) }

// decl returns the import declaration: the standard library, then the rest.
func (s *importSet) decl() jen.Code {
	var std, others []jen.Code
	paths := s.sorted()
	slices.Sort(paths)
	for _, p := range paths {
		spec := jen.Lit(p)
		if s.names[p] != s.used[p] || naming.AssumedImport(p) != s.used[p] {
			spec = jen.Id(s.names[p]).Lit(p)
		}
		if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") {
			others = append(others, spec)
		} else {
			std = append(std, spec)
		}
	}
	if len(std) > 0 && len(others) > 0 {
		std = append(std, jen.Empty())
	}
	lines := append(std, others...)
	return jen.Id("import").Custom(jen.Options{Open: "(", Close: ")", Multi: true}, lines...)
}

// useExpr adds the packages that an expression names.
func (s *importSet) useExpr(e *expr.Expr) {
	e.EachOutside(func(id *ast.Ident, obj types.Object) {
		if p, ok := obj.(*types.PkgName); ok {
			s.usePackage(p.Imported())
		} else if expr.IsPackageLevel(obj) {
			s.usePackage(obj.Pkg())
		}
	})
}

// useCode adds the packages that the value of a [directive.Field] names.
func (s *importSet) useCode(v any) {
	switch v := v.(type) {
	case time.Duration:
		s.use("time", "time")
	case directive.Name:
		s.use(v.PkgPath, path.Base(v.PkgPath))
	case directive.Call:
		s.useCode(v.Fun)
		for _, arg := range v.Args {
			s.useCode(arg)
		}
	}
}
