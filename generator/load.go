package generator

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A packageDir is the directory of one of the packages to work on.
type packageDir struct {
	path    string // import path
	dir     string
	files   []string        // names of the Go files that belong to the build, tests too
	ignored []string        // names of those that build constraints exclude
	sources []*sourceFile   // those with directives
	orphans []string        // generated files that no source asks for any more
	broken  bool            // a source could not be parsed
	overlay map[string]stub // by path

	// The files as they are type-checked, once read: those of the package, of
	// its tests inside, and of those outside of it.
	plain, inside, outside []*ast.File
	faults                 []packages.Error // in their syntax
}

// load lists the packages that the patterns name.
func (r *run) load() []*packageDir {
	r.list = &listing{dir: r.cfg.Dir, flags: r.buildFlags(), pkgs: map[string]*listed{}}
	pkgs, err := r.list.list(r.cfg.Patterns)
	if err != nil {
		r.atPosition(token.Position{}, "%s", r.list.why(r.cfg.Patterns))
		return nil
	}
	var dirs []*packageDir
	for _, p := range pkgs {
		switch {
		case p.ImportPath == "command-line-arguments":
			r.atPosition(token.Position{}, "%s: name packages, not files", strings.Join(r.cfg.Patterns, " "))
			continue
		case p.Dir == "" || len(p.GoFiles)+len(p.CgoFiles) == 0 && p.Error != nil && len(goFiles(p.Dir)) == 0:
			if p.Error != nil {
				r.atPosition(p.position(r.cfg.Dir), "%s", strings.TrimSpace(p.Error.Err))
			}
			continue
		}
		dirs = append(dirs, newPackageDir(p))
	}
	return dirs
}

func newPackageDir(p *listed) *packageDir {
	d := &packageDir{path: p.ImportPath, dir: p.Dir, ignored: p.IgnoredGoFiles}
	for _, name := range goFiles(p.Dir) {
		if !slices.Contains(d.ignored, name) {
			d.files = append(d.files, name)
		}
	}
	return d
}

func (r *run) buildFlags() []string {
	if r.cfg.Tags == "" {
		return nil
	}
	return []string{"-tags=" + r.cfg.Tags}
}

// goFiles returns the names of the Go files in a directory, sorted.
func goFiles(dir string) []string {
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

// parse finds the directives in the packages' files.
func (r *run) parse(dirs []*packageDir) {
	inParallel(len(dirs), func(i int) {
		d := dirs[i]
		contents := map[string][]byte{}
		wanted := map[string]bool{}
		var importers []runtimeImporter
		for _, name := range d.files {
			path := filepath.Join(d.dir, name)
			content, err := os.ReadFile(path)
			if err != nil {
				r.atPosition(token.Position{Filename: path}, "%v", err)
				continue
			}
			if !isOurs(content) {
				importers = append(importers, runtimeImports(name, content)...)
			}
			if mayMention(content) && !isClearlyOurs(content) {
				contents[path] = content
			}
		}
		for _, name := range d.ignored {
			path := filepath.Join(d.dir, name)
			if content, err := os.ReadFile(path); err == nil && !isClearlyOurs(content) && bytes.Contains(content, []byte(directivePrefix)) {
				wanted[outputName(path)] = true
				r.note(shortPath(r.dir, path) + ": skipped, build constraints exclude it: set GOOS, GOARCH or -tags to generate for it")
			}
		}
		d.overlay = map[string]stub{}
		concrete := d.findConcrete(contents)
		d.readFilesOf(concrete, contents)
		var files []*sourceFile
		for _, path := range slices.Sorted(mapKeys(contents)) {
			if src := r.parseOne(d, path, contents[path], importers, concrete); src != nil {
				files = append(files, src)
			}
		}
		r.linkMethods(files)
		for _, src := range d.sources {
			if len(src.ifaces) > 0 {
				wanted[outputName(src.path)] = true
			}
		}
		d.findOrphans(wanted)
	})
}

// parseOne parses a file, and again with the stubs of its wrappers appended
// when it has directives.
func (r *run) parseOne(d *packageDir, path string, content []byte, importers []runtimeImporter, concrete map[string][]*concreteType) *sourceFile {
	out := outputName(path)
	stubbed := stub{content: content}
	scratch := parseSource(token.NewFileSet(), path, content, func(token.Pos, string, ...any) *Diagnostic { return nil })
	if scratch != nil {
		scratch.addConcrete(concrete[path], r.out != nil)
	}
	usesRuntime := false
	if scratch != nil && len(scratch.ifaces) > 0 && r.out == nil {
		usesRuntime = slices.ContainsFunc(importers, func(i runtimeImporter) bool {
			return i.pkg == scratch.ast.Name.Name && (!i.test || strings.HasSuffix(path, "_test.go"))
		})
		if err := mayReplace(out); err != nil {
			r.atPosition(token.Position{Filename: out}, "%v", err)
		}
		d.overlay[out] = emptyStub(scratch, content)
		stubbed = withStubs(scratch, content, usesRuntime)
	} else if scratch != nil && len(scratch.methods) > 0 {
		d.overlay[out] = emptyStub(scratch, content) // for what it imports
	}
	src := parseSource(r.fset, path, stubbed.content, r.at)
	if src == nil {
		d.broken = d.broken || scratch == nil && !isOurs(content)
		return nil
	}
	src.addConcrete(concrete[path], r.out != nil)
	if r.out == nil {
		stubMethods(src.ast, concrete, path)
	}
	if len(src.ifaces)+len(src.methods) > 0 || len(concrete) > 0 {
		d.sources = append(d.sources, src)
		if usesRuntime {
			importRuntime(src.ast)
		}
		stubbed.ast = src.ast
		d.overlay[path] = stubbed
	}
	return src
}

// A runtimeImporter is a file that imports the runtime.
type runtimeImporter struct {
	pkg  string // the name in its package clause
	test bool
}

// runtimeImports returns the file if it imports the runtime.
func runtimeImports(name string, content []byte) []runtimeImporter {
	quoted := strconv.Quote(runtimePath)
	if !bytes.Contains(content, []byte(quoted)) {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", content, parser.ImportsOnly)
	if err != nil || !slices.ContainsFunc(file.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == quoted }) {
		return nil
	}
	return []runtimeImporter{{file.Name.Name, strings.HasSuffix(name, "_test.go")}}
}

func (d *packageDir) findOrphans(wanted map[string]bool) {
	for _, name := range slices.Concat(d.files, d.ignored) {
		path := filepath.Join(d.dir, name)
		if wanted[path] || !strings.Contains(name, "_ratelimit") || !strings.HasSuffix(name, ".go") {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil || !isClearlyOurs(content) || sourceOf(content) != "" {
			continue
		}
		d.orphans = append(d.orphans, path)
		if len(d.sources) > 0 && slices.Contains(d.files, name) {
			d.overlay[path] = stub{content: []byte(buildLines(content) + "package " + packageName(content, d.sources[0].ast) + "\n")}
		}
	}
}

// packageName returns the name in a file's package clause, or that of another
// file if it has none.
func packageName(content []byte, other *ast.File) string {
	if f, err := parser.ParseFile(token.NewFileSet(), "", content, parser.PackageClauseOnly); err == nil {
		return f.Name.Name
	}
	return other.Name.Name
}
