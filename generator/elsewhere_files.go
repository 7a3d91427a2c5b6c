package generator

import (
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// declaredIn stands in a file whose interfaces are those of another package,
// so that a run for that package knows its own.
const declaredIn = "The interfaces wrapped here are declared in %s."

var declaredInLine = regexp.MustCompile(`(?m)^// The interfaces wrapped here are declared in (\S+)\.\r?$`)

// sourceOf returns the import path of the package whose interfaces a generated
// file wraps, or "" if it is the file's own.
func sourceOf(content []byte) string {
	if m := declaredInLine.FindSubmatch(content); m != nil {
		return string(m[1])
	}
	return ""
}

// checkOutputs reports files that cannot be written to the other package, and
// finds those that no source asks for any more.
func (r *run) checkOutputs(dirs []*packageDir, files []*checkedFile) []output {
	if r.out == nil {
		return nil
	}
	asked := map[string]*checkedFile{}
	declared := map[string]*wrapper{}
	for _, f := range files {
		out := r.outputPath(f.src.path)
		if before := asked[out]; before != nil {
			r.at(f.src.ast.Name.Pos(), "%s would be generated for %s as well: rename one of the source files, or write them to packages of their own",
				shortPath(r.dir, out), shortPath(r.dir, before.src.path))
			continue
		}
		asked[out] = f
		if err := mayReplace(out); err != nil {
			r.atPosition(token.Position{Filename: out}, "%v", err)
		}
		for _, w := range f.wrappers {
			names := w.decl.generates()
			for _, l := range w.limits {
				names = append(names, l.varName)
			}
			for _, name := range names {
				if before := declared[name]; before != nil {
					r.at(w.decl.spec.Name.Pos(), "%s would be generated for %s.%s as well: write them to packages of their own", name, before.pkgName, before.name)
					break
				}
				declared[name] = w
			}
		}
	}
	return r.orphansOut(dirs, func(path string) bool { return asked[path] != nil })
}

// orphansOut returns the files in the other package that were generated for
// the packages of this run and that no source of theirs asks for any more.
func (r *run) orphansOut(dirs []*packageDir, asked func(path string) bool) []output {
	var orphans []output
	for _, name := range goFiles(r.out.dir) {
		path := filepath.Join(r.out.dir, name)
		content, err := os.ReadFile(path)
		if err != nil || asked(path) || !isClearlyOurs(content) {
			continue
		}
		source := sourceOf(content)
		if slices.ContainsFunc(dirs, func(d *packageDir) bool { return d.path == source }) {
			orphans = append(orphans, output{path: path})
		}
	}
	return orphans
}

// makeOutDir makes the directory of the other package.
func (r *run) makeOutDir() error {
	if r.out == nil || r.cfg.Check {
		return nil
	}
	if err := os.MkdirAll(r.out.dir, 0o755); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	return nil
}
