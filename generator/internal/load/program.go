// Package load finds the packages of a run and their directives, and type-checks
// the files that have some. It leaves generated files out, which may be missing,
// stale or broken.
package load

import (
	"errors"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/generator/internal/output"
	"golang.org/x/tools/go/packages"
)

// A Config says what to load.
type Config struct {
	Dir      string   // in which the go command runs
	Patterns []string // of packages, as for the go command
	Tags     string   // build tags, separated by commas
	// Out and OutName are the flags -out and -pkg: see [Place].
	Out, OutName string
}

// A Program is the set of packages that a run is about.
type Program struct {
	cfg    Config
	fset   *token.FileSet
	report *diag.Reporter
	list   *goList
	dirs   []*dir

	foreign []*dir              // not of this run, with policies that its packages use
	pkgs    []*packages.Package // as they were type-checked
}

// A dir is the directory of one of the packages to work on. Its files may belong
// to several packages: that of its tests is another one.
type dir struct {
	path     string // import path
	name     string
	dir      string
	files    []string          // names of the Go files that belong to the build, tests too
	ignored  []string          // names of those that build constraints exclude
	sources  []*directive.File // those with directives
	orphans  []string          // generated files that no source asks for any more
	guests   []guest           // generated files with wrappers of other packages
	place    *Place            // that the wrappers go to; nil: this directory
	policies []*directive.File // those with policies
	// excluded are the paths of the ignored files from which wrappers are generated
	// on other systems, or with other tags.
	excluded []string
	// elsewhere are the paths of files of other builds that certainly have wrappers.
	elsewhere []string
	broken    bool            // a source could not be parsed
	clash     string          // what the go command says of files of several packages, or ""
	taken     bool            // it declares names that are to be generated
	overlay   map[string]stub // by path

	// The files as they are type-checked, once read: those of the package, of
	// its tests inside, and of those outside of it.
	plain, inside, outside []*ast.File
	otherBuilds            []*ast.File      // of the ignored files, for what they declare
	faults                 []packages.Error // in their syntax
}

// List asks the go command for the packages that cfg names. It reports
// why there are none.
func List(cfg Config, report *diag.Reporter) *Program {
	p := &Program{cfg: cfg, fset: report.Fset, report: report}
	p.list = &goList{dir: cfg.Dir, pkgs: map[string]*listed{}}
	if cfg.Tags != "" {
		p.list.flags = []string{"-tags=" + cfg.Tags}
	}
	if !gotypes.HasAliases() {
		report.AtPosition(token.Position{}, "%s", gotypes.NoAliases)
		return p
	}
	pkgs, err := p.list.list(cfg.Patterns)
	if err != nil {
		report.AtPosition(token.Position{}, "%s", p.list.explainNoPackages(cfg.Patterns))
		return p
	}
	if strings.Contains(os.Getenv("GOFLAGS"), "-overlay") {
		report.Note("GOFLAGS: -overlay has no effect on rategen, which reads the files on disk")
	}
	foreign := 0
	for _, l := range pkgs {
		if l.isForeign() {
			// A pattern such as all reaches it. A package named is a mistake.
			foreign++
			if slices.Contains(cfg.Patterns, l.ImportPath) {
				report.AtPosition(token.Position{}, "package %s is not in the main module: run rategen in the module that it belongs to", l.ImportPath)
			}
			continue
		}
		if l.ImportPath == "command-line-arguments" {
			report.AtPosition(token.Position{}, "%s: name packages, not files", strings.Join(cfg.Patterns, " "))
			continue
		}
		if l.Dir == "" || len(l.GoFiles)+len(l.CgoFiles) == 0 && l.Error != nil && len(output.GoFiles(l.Dir)) == 0 {
			if l.Error != nil {
				report.AtPosition(l.position(cfg.Dir), "%s", strings.TrimSpace(l.Error.Err))
			}
			continue
		}
		p.dirs = append(p.dirs, newPackageDir(l))
	}
	if foreign == len(pkgs) && !report.HasErrors() {
		report.AtPosition(token.Position{}, "no packages of the main module match %s: run rategen in the module that they belong to", strings.Join(cfg.Patterns, " "))
	}
	return p
}

func newPackageDir(p *listed) *dir {
	d := &dir{path: p.ImportPath, name: p.Name, dir: p.Dir, ignored: p.IgnoredGoFiles}
	if p.clashes() {
		d.clash = p.Error.Err
	}
	for _, name := range output.GoFiles(p.Dir) {
		if !slices.Contains(d.ignored, name) {
			d.files = append(d.files, name)
		}
	}
	return d
}

// Orphans returns the generated files that no source file asks for any more.
func (p *Program) Orphans() []string {
	return ofAll(p.dirs, func(d *dir) []string { return d.orphans })
}

// ofAll returns what all directories have.
func ofAll[T any](dirs []*dir, of func(*dir) []T) (all []T) {
	for _, d := range dirs {
		all = append(all, of(d)...)
	}
	return all
}

// MissingElsewhere returns the generated files that do not exist and that this build cannot
// generate.
func (p *Program) MissingElsewhere() []string {
	var missing []string
	for _, d := range p.dirs {
		for _, source := range d.elsewhere {
			path := naming.OutputFile(source)
			if d.place != nil {
				path = filepath.Join(d.place.Dir, filepath.Base(path))
			}
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				missing = append(missing, path)
			}
		}
	}
	return missing
}

// Empty returns how many packages there are if none of them has a directive, or else 0.
func (p *Program) Empty() int {
	for _, d := range p.dirs {
		if len(d.sources)+len(d.policies)+len(d.excluded) > 0 {
			return 0
		}
	}
	return len(p.dirs)
}

// IsUntidy reports whether the go command lists nothing any more before go.mod has what the generated
// code imports.
func (p *Program) IsUntidy() bool { return p.list.isUntidy(p.cfg.Patterns) }

// ImportWay is the function of the same name for the packages of the program.
func (p *Program) ImportWay(from, to string) string {
	return ImportWay(func(path string) []string {
		if l := p.list.pkgs[path]; l != nil {
			return l.Imports
		}
		return nil
	}, from, to)
}

// ImportWay says how a package imports another one: " itself", or " by way of "
// and the path of a third one. It is "" if it does not.
func ImportWay(importsOf func(path string) []string, from, to string) string {
	seen := map[string]bool{}
	var imports func(path string) bool
	imports = func(path string) bool {
		if path == to {
			return true
		}
		if seen[path] {
			return false
		}
		seen[path] = true
		return slices.ContainsFunc(importsOf(path), imports)
	}
	if from == to {
		return ""
	}
	for _, path := range importsOf(from) {
		if path == to {
			return " itself"
		}
		if imports(path) {
			return " by way of " + path
		}
	}
	return ""
}

// reached returns the packages that have directives, and all that these and
// their tests import.
func (p *Program) reached() map[string]bool {
	reached := map[string]bool{}
	var reach func(path string)
	reach = func(path string) {
		if l := p.list.pkgs[path]; l != nil && !reached[path] {
			reached[path] = true
			for _, i := range l.Imports {
				reach(i)
			}
		}
	}
	for _, d := range annotatedDirs(p.dirs) {
		reach(d.path)
		paths := map[string]bool{}
		importsOf(d.inside, paths)
		importsOf(d.outside, paths)
		d.directiveImports(paths)
		for path := range paths {
			reach(path)
		}
	}
	return reached
}

// Sources returns the paths on which the outcome of a run depends: the
// directories of packages that somebody edits, and a file that changes with the
// toolchain. It returns nothing if they cannot all be named.
func (p *Program) Sources() []string {
	var paths []string
	reached := p.reached()
	for _, l := range p.list.pkgs {
		if l.Error != nil || l.Dir == "" && l.ImportPath != "unsafe" && l.ImportPath != "C" {
			return nil // it may come to be in a place that is not known yet
		}
		if l.Standard || l.Dir == "" {
			continue
		}
		if l.isDownloaded() && !strings.Contains(l.Dir, string(filepath.Separator)+"vendor"+string(filepath.Separator)) {
			continue
		}
		if len(l.CgoFiles) > 0 && reached[l.ImportPath] {
			return nil // headers count too, and may be anywhere
		}
		paths = append(paths, l.Dir)
	}
	for _, place := range p.Places() {
		paths = append(paths, place.Dir)
	}
	if l := p.list.pkgs["internal/goarch"]; l != nil {
		paths = append(paths, filepath.Join(l.Dir, "..", "..", "..", "VERSION"))
	}
	return paths
}
