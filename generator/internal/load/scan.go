package load

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

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/generator/internal/output"
)

// A scan is the outcome of a first look at the bytes of a package's files.
type scan struct {
	contents  map[string][]byte // of the files that may have directives, and that methods need
	importers []runtimeImporter
	wanted    map[string]bool // generated files that must stay
}

// scan reads the files of a package, most of which have no directives and need
// not be parsed.
func (p *Program) scan(d *dir) *scan {
	s := &scan{contents: map[string][]byte{}, wanted: map[string]bool{}}
	var lines []generateLine
	for _, name := range d.files {
		path := filepath.Join(d.dir, name)
		content, err := os.ReadFile(path)
		if err != nil {
			p.report.AtPosition(token.Position{Filename: path}, "%v", err)
			continue
		}
		if !output.IsOurs(content) {
			lines = append(lines, p.generateLines(d, name, content)...)
			s.importers = append(s.importers, runtimeImports(name, content)...)
		}
		if directive.MayHold(content) && !output.IsClearlyOurs(content) {
			s.contents[path] = content
		}
	}
	p.findPlace(d, append(lines, p.scanIgnored(d)...))
	p.checkModule(d)
	p.keepExcluded(d, s)
	return s
}

// A runtimeImporter is a file that imports the runtime.
type runtimeImporter struct {
	pkg  string // the name in its package clause
	test bool
}

// runtimeImports returns the file if it imports the runtime.
func runtimeImports(name string, content []byte) []runtimeImporter {
	quoted := strconv.Quote(naming.RuntimePath)
	if !bytes.Contains(content, []byte(quoted)) {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", content, parser.ImportsOnly)
	if err != nil || !slices.ContainsFunc(file.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == quoted }) {
		return nil
	}
	return []runtimeImporter{{file.Name.Name, strings.HasSuffix(name, "_test.go")}}
}

// findOrphans finds the generated files that are not wanted.
func (d *dir) findOrphans(wanted map[string]bool) {
	for _, name := range slices.Concat(d.files, d.ignored) {
		path := filepath.Join(d.dir, name)
		if wanted[path] || !strings.Contains(name, "_ratelimit") || !strings.HasSuffix(name, ".go") {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil || !output.IsClearlyOurs(content) {
			continue
		}
		if source := output.SourceOf(content); source != "" {
			d.guests = append(d.guests, guest{name, source})
			continue
		}
		d.addOrphan(name, content)
	}
}

// addOrphan adds a generated file to those that are not wanted. The type checker sees it
// empty.
func (d *dir) addOrphan(name string, content []byte) {
	path := filepath.Join(d.dir, name)
	d.orphans = append(d.orphans, path)
	if len(d.sources) > 0 && slices.Contains(d.files, name) {
		clause := d.name
		if strings.HasSuffix(packageName(content), "_test") && strings.HasSuffix(name, "_test.go") {
			clause += "_test"
		}
		d.overlay[path] = stub{content: []byte(output.BuildLines(content) + "package " + clause + "\n")}
	}
}

// A guest is a generated file that wraps interfaces of another package.
type guest struct{ name, source string }

// findLeftGuests finds the guests whose package writes them elsewhere now, or is gone.
func (p *Program) findLeftGuests() {
	byPath := map[string]*dir{}
	for _, d := range p.dirs {
		byPath[d.path] = d
	}
	for _, d := range p.dirs {
		for _, g := range d.guests {
			if host := byPath[g.source]; host != nil && (host.place == nil || !sameDir(host.place.Dir, d.dir)) || host == nil && p.isGone(g.source, d) {
				if content, err := os.ReadFile(filepath.Join(d.dir, g.name)); err == nil {
					d.addOrphan(g.name, content)
				}
			}
		}
	}
}

// isGone reports whether a package has no files any more. It would belong to the module of
// another one.
func (p *Program) isGone(path string, of *dir) bool {
	l := p.list.pkgs[of.path]
	if l == nil || l.Module == nil {
		return false
	}
	rest, ok := strings.CutPrefix(path+"/", l.Module.Path+"/")
	dir := filepath.Join(l.Module.Dir, filepath.FromSlash(rest))
	return ok && len(output.GoFiles(dir)) == 0 && sameDir(moduleRoot(dir), l.Module.Dir)
}

// packageName returns the name in a file's package clause, or "" if it has none.
func packageName(content []byte) string {
	f, err := parser.ParseFile(token.NewFileSet(), "", content, parser.PackageClauseOnly)
	if err != nil {
		return ""
	}
	return f.Name.Name
}
