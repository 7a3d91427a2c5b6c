package output

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rategen/rategen/generator/internal/naming"
)

// A Package is a package that wrappers are written to instead of that of
// their interfaces.
type Package struct {
	dir   string
	Types *types.Package
	Names map[string]string // what its other files declare, and in which of them
}

// OpenPackage finds out about the package in a directory. The given name, if not
// empty, must be that of its files; without one they decide, or the
// directory's name. Errors name paths as short returns them.
func OpenPackage(dir, name string, short func(path string) string) (*Package, error) {
	importPath, err := importPathOf(dir)
	if err != nil {
		return nil, err
	}
	given := name != ""
	if !given {
		name = filepath.Base(dir)
	}
	o := &Package{dir: dir, Names: map[string]string{}}
	for _, file := range GoFiles(dir) {
		p := filepath.Join(dir, file)
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil || strings.HasSuffix(file, "_test.go") {
			continue // the compiler's to tell
		}
		if content, err := os.ReadFile(p); err == nil && IsOurs(content) {
			if f.Name.Name != name && !given {
				name = f.Name.Name
			}
			continue
		}
		if f.Name.Name != name && given {
			return nil, fmt.Errorf("-pkg %s: %s belongs to package %s", name, short(p), f.Name.Name)
		}
		name, given = f.Name.Name, true
		for _, declared := range declaredNames(f) {
			o.Names[declared] = short(p)
		}
	}
	if !token.IsIdentifier(name) || name == "_" || name == "main" {
		return nil, fmt.Errorf("%s cannot be the name of the package in %s: choose one with -pkg", strconv.Quote(name), short(dir))
	}
	o.Types = types.NewPackage(importPath, name)
	return o, nil
}

var moduleLine = regexp.MustCompile("(?m)^module[ \t]+[\"`]?([^\\s\"`]+)")

// importPathOf returns the import path of a directory, which need not exist.
func importPathOf(dir string) (string, error) {
	for root, below := dir, ""; ; root, below = filepath.Dir(root), path.Join(filepath.Base(root), below) {
		mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
		if err == nil {
			m := moduleLine.FindSubmatch(mod)
			if m == nil {
				return "", fmt.Errorf("-out: %s names no module", filepath.Join(root, "go.mod"))
			}
			return path.Join(string(m[1]), below), nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) || root == filepath.Dir(root) {
			return "", fmt.Errorf("-out: %s is in no module, so nothing could import it", dir)
		}
	}
}

// declaredNames returns the package-level names of a file.
func declaredNames(f *ast.File) []string {
	var names []string
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				names = append(names, decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range decl.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// Path returns the path of the file generated for a source file. A nil package
// stands for the source file's own.
func (o *Package) Path(source string) string {
	if o == nil {
		return naming.OutputFile(source)
	}
	return filepath.Join(o.dir, filepath.Base(naming.OutputFile(source)))
}

// Orphans returns the files in the package that were generated for one of the
// packages with these import paths and are not asked for any more.
func (o *Package) Orphans(pkgPaths []string, asked func(path string) bool) []string {
	var orphans []string
	for _, name := range GoFiles(o.dir) {
		path := filepath.Join(o.dir, name)
		content, err := os.ReadFile(path)
		if err != nil || asked(path) || !IsClearlyOurs(content) {
			continue
		}
		if slices.Contains(pkgPaths, SourceOf(content)) {
			orphans = append(orphans, path)
		}
	}
	return orphans
}

// MakeDir makes the package's directory.
func (o *Package) MakeDir() error {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	return nil
}

// GoFiles returns the names of the Go files in a directory, sorted.
func GoFiles(dir string) []string {
	entries, _ := os.ReadDir(dir) // a directory that cannot be read has no files for us
	var names []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasSuffix(name, ".go") && name[0] != '.' && name[0] != '_' && !e.IsDir() {
			names = append(names, name)
		}
	}
	return names
}
