// Package model turns type-checked files with directives into wrappers: their
// methods, the rules declared on them and the limits on each call. Code that is
// written from a model without errors compiles.
package model

import (
	"cmp"
	"go/ast"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/load"
	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/generator/internal/output"
	"github.com/rategen/rategen/generator/internal/parallel"
	"github.com/rategen/rategen/internal/spec"
	"golang.org/x/tools/go/packages"
)

// A File is a source file whose wrappers are ready to be written.
type File struct {
	*load.File
	Wrappers []*Wrapper
	Home     *types.Package             // that the generated file belongs to
	Out      *output.Package            // the same, or nil if it is the source file's own
	limited  map[string]*directive.Decl // the interfaces of its package that have directives
}

// A Builder makes the wrappers of a run.
type Builder struct {
	// Report takes errors and warnings.
	Report *diag.Reporter
	// Outs are the packages, by directory, that wrappers are written to if they
	// do not stand next to their interfaces.
	Outs map[string]*output.Package
	// ImportWay says how a package imports another one, or "" if it does not.
	// It may be nil if there are no Outs.
	ImportWay func(from, to string) string

	// Policies are the packages of the files with policies.
	Policies map[*directive.File]*packages.Package

	constants sync.Map // of each directive.Constant its *expr.Expr
}

// Build checks the interfaces of files and their limits, and returns those
// files that can have wrappers.
func (b *Builder) Build(files []*load.File) []*File {
	b.completePolicies()
	// Variables of one package must have different names, in its tests as well.
	var packages [][]*load.File
	for _, f := range files {
		i := slices.IndexFunc(packages, func(p []*load.File) bool { return p[0].Names == f.Names })
		if i < 0 {
			i, packages = len(packages), append(packages, nil)
		}
		packages[i] = append(packages[i], f)
	}
	built := make([][]*File, len(packages))
	parallel.Do(len(packages), func(i int) { built[i] = b.buildPackage(packages[i]) })
	all := slices.Concat(built...)
	if !b.Report.HasErrors() {
		b.checkTerms(all)
	}
	return all
}

// buildPackage builds the files of one package.
func (b *Builder) buildPackage(files []*load.File) []*File {
	var built []*File
	var vars map[string]bool // the names declared so far
	limited := map[string]*directive.Decl{}
	for _, file := range files {
		for _, decl := range file.Source.Decls {
			limited[decl.Spec.Name.Name], limited[decl.InterfaceName()] = decl, decl
		}
	}
	slices.SortStableFunc(files, func(a, b *load.File) int { return cmp.Compare(scarcity(a), scarcity(b)) })
	for _, file := range files {
		f := &File{File: file, Home: file.Pkg.Types, limited: limited}
		if file.Place != nil {
			if f.Out = b.Outs[file.Place.Dir]; f.Out == nil {
				continue // what is wrong with it is reported
			}
			f.Home = f.Out.Types
			if !b.checkOut(f) {
				continue
			}
		}
		if vars == nil {
			vars = f.TakenNames()
		}
		b.buildFile(f, vars)
		built = append(built, f)
	}
	return built
}

// scarcity orders files by where they are built: everywhere, in some builds, in tests.
// A file of more builds gets its names first, so that they do not depend on the files of fewer.
func scarcity(f *load.File) int {
	if strings.HasSuffix(f.Source.Path, "_test.go") {
		return 2
	}
	if output.Constraint(f.Source.Path, f.Content) != "" {
		return 1
	}
	return 0
}

// buildFile builds the wrappers of a file. Their variables get names that are
// not taken, and take them.
func (b *Builder) buildFile(f *File, vars map[string]bool) {
	scopes := b.scopes(f)
	for _, decl := range f.Source.Decls {
		b.Report.Guard(decl.Spec.Name.Pos(), func() {
			w := b.newWrapper(f, decl)
			if w == nil {
				return
			}
			b.applyLimits(f, w, scopes, func(base string) string {
				name := naming.Free(base, vars)
				vars[name] = true
				return name
			})
			b.applyConstants(f, w)
			b.checkImports(f, w)
			f.Wrappers = append(f.Wrappers, w)
		})
	}
}

// applyLimits makes the rules of an interface and the limits on its methods:
// those of the whole interface first, then the method's own.
func (b *Builder) applyLimits(f *File, w *Wrapper, scopes func(*Wrapper, *Method) *expr.Scope, newVar func(string) string) {
	base := w.pkgName + "." + w.Name
	varBase := naming.LowerFirst(cmp.Or(w.Decl.TypeName, w.Name))
	shared := settingsIn(w.Decl.Own)
	for i, s := range shared {
		b.complete(s, scopes(w, &Method{}))
		r := b.newRule(s, base, i)
		r.VarName = newVar(varBase + "Limit" + nameSuffix(i))
		w.Rules = append(w.Rules, r)
		b.checkMethods(w, s)
	}
	b.checkNumbers(shared)
	sharedRules := slices.Clone(w.Rules)
	for _, d := range w.Decl.Own {
		if d.Off {
			b.Report.At(d.Pos, "off on an interface has no effect: remove it, and the directives it was to turn off")
		}
	}
	for _, m := range w.Methods {
		var own []*directive.Directive
		if m.explicit {
			own = w.Decl.Methods[m.Name]
		}
		found := b.findStream(f, m, own, w, newVar)
		rules := b.sharedBy(w, m, own, sharedRules)
		applied := len(rules)
		for i, s := range settingsIn(own) {
			if found && !m.canRefuse(own, rules) {
				b.Report.At(s.Pos, "%s has no error result to refuse a call with: add one as its last result, or write deny=CALL, a call that gives what it returns then", m.Name)
			}
			b.complete(s, scopes(w, m))
			r := b.newRule(s, base+"."+m.Name, i)
			r.VarName = newVar(varBase + naming.UpperFirst(m.Name) + "Limit" + nameSuffix(i))
			w.Rules = append(w.Rules, r)
			rules = append(rules, r)
		}
		b.checkNumbers(settingsIn(own))
		b.checkPrefixes(m, rules)
		if len(rules) > spec.MaxLimits {
			b.Report.At(rules[spec.MaxLimits].Pos, "%s has %d limits, the most is %d: remove some", m.Name, len(rules), spec.MaxLimits)
		}
		for _, r := range rules {
			b.Report.Guard(r.Pos, func() { m.Limits = append(m.Limits, b.newLimit(m, r, scopes(w, m))) })
		}
		b.applyContext(m, rules[:applied], rules[applied:], scopes(w, m))
		b.applyDeny(w, m, scopes(w, m))
		b.checkStream(m)
	}
	b.checkApplied(w, sharedRules)
	b.applyUsage(w)
}

// sharedBy returns the rules of the whole interface that apply to a method with
// these directives of its own.
func (b *Builder) sharedBy(w *Wrapper, m *Method, own []*directive.Directive, shared []*Rule) []*Rule {
	off := slices.IndexFunc(own, func(d *directive.Directive) bool { return d.Off })
	if off >= 0 && len(own) > 1 {
		b.Report.At(own[off].Pos, "off beside other directives of %s: remove it or them", m.Name)
	} else if off >= 0 && len(shared) == 0 && m.unlimited == "" {
		b.Report.At(own[off].Pos, "off has no effect: %s has no directive on the whole interface, so %s is not limited anyway; remove it", w.Name, m.Name)
	}
	var rules []*Rule
	gone := b.replaced(w, m, own, shared)
	for _, r := range shared {
		if off >= 0 || r.LeavesOut(m.Name) || gone[r] {
			continue
		}
		r.applies = true
		if !m.canRefuse(own, shared) {
			b.Report.At(r.Pos, "method %s of %s cannot be limited, its last result is not an error: add one, deny=CALL with a call that gives its results, except=%s, or %soff above the method", m.Name, w.Name, m.Name, directive.Prefix)
			continue
		}
		rules = append(rules, r)
	}
	return rules
}

// newRule names the i-th rule of a method, or of the whole interface. Its
// source has no line number: a line inserted above a method changes no limit,
// and must not make the generated file stale.
func (b *Builder) newRule(s *directive.Settings, name string, i int) *Rule {
	where := name
	_, declared, _ := strings.Cut(name, ".")
	file := filepath.Base(b.Report.Fset.PositionFor(s.Pos, false).Filename)
	if i > 0 {
		name += "#" + nameSuffix(i)
	}
	if p := s.Policy(); p != nil {
		name = p.File.Syntax.Name.Name + "." + p.Name
	}
	r := &Rule{Settings: s, Declared: where, Name: name, Prefix: "rate_limit:" + name + ":", Source: file + ": " + declared}
	if given := s.Name(); given != "" {
		r.Name = given
	}
	if given := s.Prefix(); given != "" {
		r.Prefix = given
	}
	return r
}

// nameSuffix is what the names of the second and further limits end in.
func nameSuffix(i int) string {
	if i == 0 {
		return ""
	}
	return strconv.Itoa(i + 1)
}

// settingsIn returns the settings of directives, leaving out //ratelimit:off.
func settingsIn(ds []*directive.Directive) []*directive.Settings {
	var all []*directive.Settings
	for _, d := range ds {
		if d.Settings != nil {
			all = append(all, d.Settings)
		}
	}
	return all
}

// scopes returns a function that tells in which scope the directives of a
// method are checked: that of the file in which they stand.
func (b *Builder) scopes(f *File) func(*Wrapper, *Method) *expr.Scope {
	known := map[*directive.File]*expr.Scope{f.Source: expr.NewScope(f.File, f.Home, b.Report)}
	return func(w *Wrapper, m *Method) *expr.Scope {
		src := f.Source
		if other := w.Decl.Sources[m.Name]; other != nil {
			src = other
		}
		if known[src] == nil {
			known[src] = expr.NewScope(f.Sibling(src), f.Home, b.Report)
		}
		return known[src]
	}
}

// checkImports reports packages that expressions need by an import of a
// directive, and that import the package of the generated code themselves. Policies
// may come from such a package: the generated code does not import it for them.
func (b *Builder) checkImports(f *File, w *Wrapper) {
	if b.ImportWay == nil {
		return
	}
	sources := append(slices.Collect(maps.Values(w.Decl.Sources)), f.Source)
	check := func(x *expr.Expr) {
		x.EachOutside(func(_ *ast.Ident, obj types.Object) {
			p, ok := obj.(*types.PkgName)
			if !ok {
				return
			}
			for _, src := range sources {
				for _, spec := range src.Imports {
					if spec.Path != p.Imported().Path() {
						continue
					}
					if way := b.ImportWay(spec.Path, f.Home.Path()); way != "" {
						ReportCircle(b.Report, spec, f.Home.Path(), way)
					}
				}
			}
		})
	}
	for _, m := range w.Methods {
		m.EachExpr(check)
	}
	for _, r := range w.Rules {
		if r.Max != nil {
			check(r.Max)
		}
		for _, x := range r.Constants {
			check(x)
		}
	}
}

// ReportCircle reports an import of a directive that imports the package of the
// generated code, in a way that [load.ImportWay] has found.
func ReportCircle(report *diag.Reporter, i *directive.Import, home, way string) {
	report.At(i.Pos, "ratelimit:import: package %s imports package %s%s, which would then import it, too: move what the directive needs to a package that does not", i.Path, home, way)
}
