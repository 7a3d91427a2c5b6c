package generator

import (
	"go/ast"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/load"
	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/generator/internal/output"
	"golang.org/x/tools/go/packages"
)

// areFree reports names of types and of files that are to be generated and that the
// package has already. Generated files are not among its files.
func areFree(sources []*directive.File, files []*ast.File, paths []string, report *diag.Reporter) bool {
	declared := map[string]bool{}
	for _, file := range files {
		for _, name := range output.DeclaredNames(file) {
			declared[name] = true
		}
	}
	free := true
	for _, src := range sources {
		if out := naming.OutputFile(src.Path); len(src.Decls) > 0 && slices.Contains(paths, out) {
			if err := output.MayReplace(out, "", nil); err != nil {
				report.AtPosition(token.Position{Filename: out}, "%v", err)
				free = false
			}
		}
		for _, decl := range src.Decls {
			free = decl.Claim(declared, report.At) && free
		}
	}
	return free
}

// hasImports reports whether the package imports all that the directives of a file
// do.
func hasImports(pkg *packages.Package, src *directive.File) bool {
	return !slices.ContainsFunc(src.Imports, func(i *directive.Import) bool { return pkg.Imports[i.Path] == nil })
}

// nameOf asks the go command for the name of a package. It is "" if there is none.
func nameOf(path, dir string) (string, error) {
	cmd := exec.Command("go", "list", "-e", "-f", "{{.Name}}", "--", path)
	cmd.Dir = dir
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// checkImports reports imports of directives that cannot be had, or have a name that
// is taken. The go command is asked about those that nothing else in the package
// imports. What is declared there is not known, so the expressions of the file are
// left to rategen.
func checkImports(f *load.File, report *diag.Reporter) {
	known := *f.Pkg
	known.Imports = map[string]*packages.Package{}
	for _, i := range f.Source.Imports {
		if p := f.Pkg.Imports[i.Path]; p != nil {
			known.Imports[i.Path] = p
		} else if name, err := nameOf(i.Path, filepath.Dir(f.Source.Path)); err != nil {
			return // there is nobody to ask
		} else if name != "" && name != "main" && gotypes.MayImport(f.Pkg.Types.Path(), i.Path) {
			known.Imports[i.Path] = &packages.Package{PkgPath: i.Path, Types: types.NewPackage(i.Path, name)}
		}
	}
	expr.NewScope(&load.File{Source: f.Source, Pkg: &known, Syntax: f.Syntax}, f.Pkg.Types, report)
}
