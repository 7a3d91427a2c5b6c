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
	Dir   string
	Types *types.Package
	Names map[string]string // what its other files declare, and in which of them
	// Imported are the names that its other files import packages under.
	Imported map[string]bool
	from     []string // import paths of the packages of this run whose wrappers go here
}

// OpenPackage finds out about the package in a directory. The given name, if not
// empty, must be that of its files; without one they decide, or the
// directory's name. Its files for the packages of this run, from, will be made
// anew, and so declare nothing. Errors name paths as short returns them.
func OpenPackage(dir, name string, from []string, short func(path string) string) (*Package, error) {
	importPath, err := importPathOf(dir)
	if err != nil {
		return nil, err
	}
	given := name != ""
	if !given {
		name = filepath.Base(dir)
	}
	o := &Package{Dir: dir, Names: map[string]string{}, Imported: map[string]bool{}, from: from}
	for _, file := range GoFiles(dir) {
		p := filepath.Join(dir, file)
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil || strings.HasSuffix(file, "_test.go") && strings.HasSuffix(f.Name.Name, "_test") {
			continue // the compiler's to tell
		}
		where := short(p)
		if content, err := os.ReadFile(p); err == nil && IsOurs(content) {
			if f.Name.Name != name && !given {
				name = f.Name.Name
			}
			source := SourceOf(content)
			if source == "" || slices.Contains(from, source) {
				continue
			}
			where += ", with the wrappers of package " + source + ","
		} else {
			if f.Name.Name != name && given {
				return nil, fmt.Errorf("-pkg %s: %s belongs to package %s", name, short(p), f.Name.Name)
			}
			name, given = f.Name.Name, true
		}
		for _, id := range DeclaredNames(f) {
			o.Names[id.Name] = where
		}
		for _, imported := range ImportedNames(f) {
			o.Imported[imported] = true
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

// DeclaredNames returns the package-level names of a file, where it declares them.
func DeclaredNames(f *ast.File) []*ast.Ident {
	var names []*ast.Ident
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				names = append(names, decl.Name)
			}
		case *ast.GenDecl:
			for _, s := range decl.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name)
				case *ast.ValueSpec:
					names = append(names, s.Names...)
				}
			}
		}
	}
	return names
}

// ImportedNames returns the names that a file imports packages under. One that it does not
// write is taken from the path.
func ImportedNames(f *ast.File) []string {
	var names []string
	for _, s := range f.Imports {
		if s.Name != nil {
			names = append(names, s.Name.Name)
		} else if p, err := strconv.Unquote(s.Path.Value); err == nil {
			names = append(names, naming.AssumedImport(p))
		}
	}
	return names
}

// Path returns the path of the file generated for a source file. A nil package
// stands for the source file's own.
func (p *Package) Path(source string) string {
	if p == nil {
		return naming.OutputFile(source)
	}
	return filepath.Join(p.Dir, filepath.Base(naming.OutputFile(source)))
}

// MayReplace returns an error if the file of one of the packages of this run must
// not take the place of what is at path.
func (p *Package) MayReplace(path, source string) error { return MayReplace(path, source, p.from) }

// Orphans returns the files in the package that were generated for one of the
// packages of this run and are not asked for any more.
func (p *Package) Orphans(asked func(path string) bool) []string {
	var orphans []string
	for _, name := range GoFiles(p.Dir) {
		path := filepath.Join(p.Dir, name)
		content, err := os.ReadFile(path)
		if err != nil || asked(path) || !IsClearlyOurs(content) {
			continue
		}
		if slices.Contains(p.from, SourceOf(content)) {
			orphans = append(orphans, path)
		}
	}
	return orphans
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
