package generator

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A checkedFile is a source file whose wrappers are ready to be written.
type checkedFile struct {
	src      *sourceFile
	pkg      *packages.Package
	syntax   *ast.File // as type-checked: src.ast, or what cgo made of it
	content  []byte    // of the source file
	wrappers []*wrapper
}

// check type-checks the packages that have directives and what the directives
// say. Packages without directives are never type-checked.
func (r *run) check(dirs []*packageDir) []*checkedFile {
	annotated := slices.DeleteFunc(slices.Clone(dirs), func(d *packageDir) bool { return d.broken || len(d.sources) == 0 })
	if len(annotated) == 0 {
		return nil
	}
	pkgs, err := r.typeCheck(dirs, annotated)
	if err != nil {
		r.atPosition(token.Position{}, "%s", strings.TrimSpace(err.Error()))
		return nil
	}
	var files []*checkedFile
	for _, d := range annotated {
		for _, src := range d.sources {
			pkg, syntax := r.find(pkgs, src)
			if pkg == nil {
				if !r.reportLoad(pkgs, d) {
					r.at(src.ast.Package, "this file is not part of package %s as the go command sees it", d.path)
				}
				continue
			}
			if r.reportBroken(pkg, d) {
				continue
			}
			f := &checkedFile{src: src, pkg: pkg, syntax: syntax, content: d.overlay[src.path].content}
			r.checkFile(f)
			files = append(files, f)
		}
	}
	return files
}

// typeCheck loads the annotated packages with their stubs. It first lets the
// go command see the files as they are on disk, because any overlay makes
// go/packages read all dependencies from source. An old generated file that the
// go command stumbles over is worth the second, slower way.
func (r *run) typeCheck(dirs, annotated []*packageDir) ([]*packages.Package, error) {
	var paths []string
	stubs, contents := map[string]stub{}, map[string][]byte{}
	tests, imports := false, false
	for _, d := range dirs {
		for path, s := range d.overlay {
			stubs[path], contents[path] = s, s.content
		}
	}
	for _, d := range annotated {
		paths = append(paths, d.path)
		for _, src := range d.sources {
			tests = tests || strings.HasSuffix(src.path, "_test.go")
			imports = imports || len(src.imports) > 0
		}
	}
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedForTest,
		Dir: r.cfg.Dir, BuildFlags: r.buildFlags(), Tests: tests, Fset: r.fset,
		ParseFile: func(fset *token.FileSet, path string, content []byte) (*ast.File, error) {
			if s, ok := stubs[path]; ok {
				if s.ast != nil {
					return s.ast, nil
				}
				content = s.content
			}
			return parser.ParseFile(fset, path, content, parser.SkipObjectResolution|parser.AllErrors)
		},
	}
	if !imports {
		pkgs, err := packages.Load(config, paths...)
		if err == nil && !slices.ContainsFunc(pkgs, isBroken) {
			return inOrder(pkgs), nil
		}
	}
	config.Overlay = contents
	pkgs, err := packages.Load(config, paths...)
	return inOrder(pkgs), err
}

// inOrder sorts packages; the plain one comes before the same one compiled for
// a test.
func inOrder(pkgs []*packages.Package) []*packages.Package {
	slices.SortFunc(pkgs, func(a, b *packages.Package) int {
		return cmp.Or(cmp.Compare(len(a.ForTest), len(b.ForTest)), strings.Compare(a.ID, b.ID))
	})
	return pkgs
}

func isBroken(p *packages.Package) bool { return len(compilerErrors(p)) > 0 }

// compilerErrors returns a package's errors. It leaves out what the go command
// said when it tried to compile the package, stubs missing, for export data:
// the type checker has the last word.
func compilerErrors(p *packages.Package) []packages.Error {
	errs := slices.DeleteFunc(slices.Clone(p.Errors), func(e packages.Error) bool {
		return e.Kind == packages.ListError && strings.HasPrefix(e.Msg, "# ")
	})
	if len(errs) == 0 && p.Types == nil {
		return p.Errors
	}
	return errs
}

// find returns the package that a source file was type-checked in, and the
// file as it was. A file that imports "C" is checked as cgo has rewritten it,
// with line directives that name the source.
func (r *run) find(pkgs []*packages.Package, src *sourceFile) (*packages.Package, *ast.File) {
	for _, p := range pkgs {
		for _, f := range p.Syntax {
			if f == src.ast || r.fset.Position(f.Package).Filename == src.path {
				return p, f
			}
		}
	}
	return nil, nil
}

// reportLoad reports the errors of every package in a directory.
func (r *run) reportLoad(pkgs []*packages.Package, d *packageDir) bool {
	found := false
	for _, p := range pkgs {
		if p.PkgPath == d.path || p.ForTest == d.path {
			found = r.reportBroken(p, d) || found
		}
	}
	return found
}

var (
	redeclared = regexp.MustCompile(`^(\S+) redeclared in this block`)
	other      = regexp.MustCompile(`^other declaration of (\S+)`)
	unresolved = regexp.MustCompile(`^could not import (\S+) \(invalid package name`)
	quoted     = regexp.MustCompile(`"?([^\s"()]+)"?`)
)

// reportBroken reports the go command's and the compiler's errors in a
// package.
func (r *run) reportBroken(p *packages.Package, d *packageDir) bool {
	taken := map[string]*ifaceDecl{} // the names to be generated
	imports := map[string]*importSpec{}
	for _, src := range d.sources {
		for _, decl := range src.ifaces {
			taken[wrapperName(decl.spec.Name.Name)] = decl
			taken[constructorName(decl.spec.Name.Name)] = decl
		}
		for _, spec := range src.imports {
			imports[spec.path] = spec
		}
	}
	errs := compilerErrors(p)
	for _, e := range errs {
		msg := strings.TrimSpace(e.Msg)
		if m := other.FindStringSubmatch(msg); m != nil && taken[m[1]] != nil {
			continue
		}
		if m := redeclared.FindStringSubmatch(msg); m != nil && taken[m[1]] != nil {
			decl := taken[m[1]]
			r.at(decl.spec.Name.Pos(), "the package declares %s already, which is to be generated for %s: rename one of them", m[1], decl.spec.Name.Name)
			continue
		}
		pos := parsePosition(e.Pos)
		if s, ok := d.overlay[pos.Filename]; ok && s.ast == nil {
			if spec := findImport(imports, msg); spec != nil {
				r.at(spec.pos, "ratelimit:import: package %s cannot be imported: check its path, and go.mod", spec.path)
				continue
			}
		}
		if decl := d.stubbedAt(pos); decl != nil {
			r.reportStub(decl, msg)
			continue
		}
		if m := unresolved.FindStringSubmatch(msg); m != nil && p.Imports[m[1]] != nil && len(p.Imports[m[1]].Errors) > 0 {
			// The type checker does not know why, the go command does.
			msg = strings.TrimSpace(p.Imports[m[1]].Errors[0].Msg)
		}
		r.atPosition(pos, "%s", msg)
	}
	return len(errs) > 0
}

// stubbedAt returns the interface whose stub is at a position, or nil.
func (d *packageDir) stubbedAt(pos token.Position) *ifaceDecl {
	for _, src := range d.sources {
		if i := d.overlay[src.path].ifaceAt(pos.Line); src.path == pos.Filename && i >= 0 {
			return src.ifaces[i]
		}
	}
	return nil
}

// reportStub reports an error in code that only the checker sees as one of
// the interface it was made for.
func (r *run) reportStub(decl *ifaceDecl, msg string) {
	name := decl.spec.Name
	if strings.Contains(msg, "outside a type constraint") {
		r.at(name.Pos(), "interface %s is a type constraint, of which there are no values to wrap: remove the directive", name.Name)
		return
	}
	r.at(name.Pos(), "%s cannot be wrapped: %s", name.Name, msg)
}

func findImport(imports map[string]*importSpec, msg string) *importSpec {
	for _, m := range quoted.FindAllStringSubmatch(msg, -1) {
		if spec := imports[strings.TrimSuffix(m[1], ";")]; spec != nil {
			return spec
		}
	}
	return nil
}

// parsePosition reads the file:line:column that go/packages gives.
func parsePosition(s string) token.Position {
	var pos token.Position
	cutNumber := func() (n int, ok bool) {
		i := strings.LastIndexByte(s, ':')
		if i < 0 {
			return 0, false
		}
		n, err := strconv.Atoi(s[i+1:])
		if err != nil {
			return 0, false
		}
		s = s[:i]
		return n, true
	}
	if s == "-" {
		return pos
	}
	if n, ok := cutNumber(); ok {
		pos.Line = n
		if m, ok := cutNumber(); ok {
			pos.Line, pos.Column = m, n
		}
	}
	pos.Filename = s
	return pos
}

// checkFile checks the interfaces of a file and their limits.
func (r *run) checkFile(f *checkedFile) {
	scope := newExprScope(r, f)
	vars := map[string]bool{} // the package-level names taken so far
	for _, name := range packageNames(f.pkg) {
		vars[name] = true
	}
	for _, decl := range f.src.ifaces {
		w := r.newWrapper(f, decl)
		if w == nil {
			continue
		}
		r.applyLimits(w, scope, func(base string) string {
			name := free(base, vars)
			vars[name] = true
			return name
		})
		f.wrappers = append(f.wrappers, w)
	}
}

// packageNames returns every name that a package-level declaration must not
// have: the package's own and those that one of its files imports.
func packageNames(p *packages.Package) []string {
	names := p.Types.Scope().Names()
	for _, file := range p.Syntax {
		if s := p.TypesInfo.Scopes[file]; s != nil {
			names = append(names, s.Names()...)
		}
	}
	return names
}

// free returns base, or base with the first number from 2 that makes it a
// name not taken.
func free(base string, taken map[string]bool) string {
	name := base
	for n := 2; taken[name] || token.IsKeyword(name) || name == "_" || name == ""; n++ {
		name = fmt.Sprint(base, n)
	}
	return name
}

// declared returns the object of a type declaration.
func declared(f *checkedFile, decl *ifaceDecl) *types.TypeName {
	obj, _ := f.pkg.Types.Scope().Lookup(decl.spec.Name.Name).(*types.TypeName)
	return obj
}
