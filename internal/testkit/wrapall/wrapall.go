// Package wrapall tests the generator on the interfaces of other packages. It
// declares each exported interface anew, with a directive on every method that
// returns an error. Then it generates, and type-checks the result. What vet says of generated code
// is seen in the scenarios of testdata, without a look at everything that is imported.
package wrapall

import (
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/testkit/scratch"
	"github.com/rategen/rategen/internal/testkit/typecheck"
	"golang.org/x/tools/go/packages"
)

// Test wraps the interfaces of the packages that patterns name, as seen from
// the module in directory root. checkout is that of rategen. Each interface is
// declared twice: with its methods written out, and embedded.
func Test(t *testing.T, root, checkout string, patterns ...string) {
	t.Helper()
	pkgs, err := packages.Load(&packages.Config{
		Dir:  root,
		Mode: typecheck.Mode,
	}, complete(t, root, patterns)...)
	if err != nil {
		t.Fatal(err)
	}
	module := copyModule(t, root, checkout)
	wrapped, methods := 0, 0
	for i, p := range pkgs {
		if len(p.Errors) > 0 || p.Types == nil {
			continue
		}
		d := declare(p.Types, fmt.Sprint("p", i))
		if d.interfaces == 0 {
			continue
		}
		wrapped, methods = wrapped+d.interfaces, methods+d.methods
		scratch.Write(t, filepath.Join(module, d.name, "all.go"), d.source())
	}
	if wrapped == 0 {
		t.Fatal("no interfaces in", patterns)
	}
	result, err := generator.Run(generator.Config{Dir: module, Patterns: []string{"./..."}})
	if err != nil {
		t.Fatal(err)
	}
	typecheck.Test(t, module, "./...")
	t.Logf("%d interfaces of %s, each written out and embedded: %d limited methods in %d files",
		wrapped, strings.Join(patterns, " "), methods, len(result.Files))
}

// complete returns the packages that patterns name and all of whose imports are
// there.
func complete(t *testing.T, root string, patterns []string) []string {
	pkgs, err := packages.Load(&packages.Config{
		Dir:  root,
		Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps,
	}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, p := range pkgs {
		whole := importable(p.PkgPath) && p.Name != "main"
		packages.Visit([]*packages.Package{p}, nil, func(p *packages.Package) { whole = whole && len(p.Errors) == 0 })
		if whole {
			paths = append(paths, p.PkgPath)
		}
	}
	return paths
}

// copyModule returns a directory with the go.mod and go.sum of root under
// another name.
func copyModule(t *testing.T, root, checkout string) string {
	t.Helper()
	dir := scratch.Dir(t, checkout)
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		scratch.Write(t, filepath.Join(dir, name), string(content))
	}
	edit := exec.Command("go", "mod", "edit", "-module=example.com/all", "-droptool=github.com/rategen/rategen/cmd/rategen",
		"-require=github.com/rategen/rategen@v0.0.0", "-replace=github.com/rategen/rategen="+checkout)
	edit.Dir = dir
	if out, err := edit.CombinedOutput(); err != nil {
		t.Fatalf("go mod edit: %v\n%s", err, out)
	}
	return dir
}

func importable(path string) bool {
	return !slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return part == "internal" || part == "vendor" || part == "cmd" })
}

// A declaration is a package that declares interfaces of another anew.
type declaration struct {
	name       string
	imports    map[*types.Package]string
	body       strings.Builder
	interfaces int
	methods    int
}

func declare(p *types.Package, name string) *declaration {
	d := &declaration{name: name, imports: map[*types.Package]string{}}
	for _, name := range p.Scope().Names() {
		obj, ok := p.Scope().Lookup(name).(*types.TypeName)
		if !ok || !obj.Exported() {
			continue
		}
		iface, ok := obj.Type().Underlying().(*types.Interface)
		if !ok || !iface.IsMethodSet() || !open(obj.Type(), iface) {
			continue
		}
		d.add(obj, iface)
	}
	return d
}

// open reports whether other packages can implement an interface, and name
// what its methods take and return.
func open(t types.Type, iface *types.Interface) bool {
	closed := false
	see := func(t types.Type) {
		text := types.TypeString(t, func(p *types.Package) string {
			closed = closed || !importable(p.Path())
			return p.Path()
		})
		closed = closed || unexported(text)
	}
	for m := range iface.Methods() {
		closed = closed || !m.Exported()
		see(m.Type())
	}
	if named, ok := t.(*types.Named); ok {
		for p := range named.TypeParams().TypeParams() {
			see(p.Constraint())
		}
	}
	return !closed
}

// unexported reports whether a type written with import paths names an
// unexported type: one behind a dot that follows a path.
func unexported(text string) bool {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ()[]{}*,;<-", r) })
	return slices.ContainsFunc(words, func(w string) bool {
		w = strings.TrimPrefix(w, "...")
		i := strings.LastIndexByte(w, '.')
		return i >= 0 && !token.IsExported(w[i+1:])
	})
}

func (d *declaration) qualify(p *types.Package) string {
	if d.imports[p] == "" {
		// Some names are those of the packages, some are not.
		d.imports[p] = p.Name()
		if len(d.imports)%3 == 0 || slices.ContainsFunc(sorted(d.imports), func(q *types.Package) bool { return q != p && q.Name() == p.Name() }) {
			d.imports[p] = fmt.Sprint("i", len(d.imports))
		}
	}
	return d.imports[p]
}

func (d *declaration) add(obj *types.TypeName, iface *types.Interface) {
	var limited, others []string
	for m := range iface.Methods() {
		if returnsError(m) {
			limited = append(limited, m.Name())
		} else {
			others = append(others, m.Name())
		}
	}
	var methods strings.Builder
	for m := range iface.Methods() {
		if returnsError(m) {
			fmt.Fprintf(&methods, "\t//ratelimit:%s\n", options(m.Signature()))
		}
		fmt.Fprintf(&methods, "\t%s%s\n", m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), d.qualify), "func"))
	}
	extra := ""
	if len(limited) == 0 {
		// Nothing to limit, but much to forward.
		extra = "\t//ratelimit:max=5\n\tLimited() error\n"
		limited = append(limited, "Limited")
	}
	d.interfaces++
	d.methods += 2 * len(limited)
	params, args := d.typeParams(obj)
	fmt.Fprintf(&d.body, "\ntype %s%s interface {\n%s%s}\n", obj.Name(), params, methods.String(), extra)
	except := ""
	if len(others) > 0 {
		except = " except=" + strings.Join(others, ",")
	}
	fmt.Fprintf(&d.body, "\n//ratelimit:max=3%s\ntype Embeds%s%s interface {\n\t%s.%s%s\n%s}\n", except, obj.Name(), params, d.qualify(obj.Pkg()), obj.Name(), args, extra)
}

func returnsError(m *types.Func) bool {
	results := m.Signature().Results()
	n := results.Len()
	return n > 0 && types.Identical(results.At(n-1).Type(), types.Universe.Lookup("error").Type())
}

// options returns a directive that uses a parameter where one has a text.
func options(sig *types.Signature) string {
	for i := range sig.Params().Len() {
		if types.Identical(sig.Params().At(i).Type(), types.Typ[types.String]) {
			return fmt.Sprintf("key=#%d max=5", i)
		}
	}
	return "max=5"
}

func (d *declaration) typeParams(obj *types.TypeName) (params, args string) {
	named, ok := obj.Type().(*types.Named)
	if !ok || named.TypeParams().Len() == 0 {
		return "", ""
	}
	var decl, names []string
	for p := range named.TypeParams().TypeParams() {
		decl = append(decl, p.Obj().Name()+" "+types.TypeString(p.Constraint(), d.qualify))
		names = append(names, p.Obj().Name())
	}
	return "[" + strings.Join(decl, ", ") + "]", "[" + strings.Join(names, ", ") + "]"
}

func (d *declaration) source() string {
	var text strings.Builder
	fmt.Fprintf(&text, "package %s\n\nimport (\n", d.name)
	for _, p := range sorted(d.imports) {
		fmt.Fprintf(&text, "\t%s %q\n", d.imports[p], p.Path())
	}
	text.WriteString(")\n" + d.body.String())
	return text.String()
}

func sorted(imports map[*types.Package]string) []*types.Package {
	return slices.SortedFunc(maps.Keys(imports), func(a, b *types.Package) int { return strings.Compare(a.Path(), b.Path()) })
}
