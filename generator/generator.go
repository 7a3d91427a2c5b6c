// Package generator writes decorators that keep calls within the limits
// declared on an interface's methods.
//
// It reads the //ratelimit: directives of Go packages, checks their
// expressions with go/types in the scope of the source file, and writes for
// each file x.go with directives a file x_ratelimit.go. Most programs use it
// through the command cmd/rategen, whose documentation is the manual.
package generator

import (
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A Config says what to generate.
type Config struct {
	// Dir is the directory in which the go command runs and to which paths
	// are shown relative. Empty means the current one.
	Dir string
	// Patterns name packages as for the go command. None means the package in
	// Dir.
	Patterns []string
	// Tags are build tags, separated by commas.
	Tags string
	// Check asks to write nothing and to say what would be written.
	Check bool
	// Out is the directory of another package that the wrappers are written
	// to, relative to Dir. Empty means next to the source files.
	Out string
	// Package is the name of the package in Out. Empty means the name that its
	// files have, or else that of the directory.
	Package string
	// CacheDir is where Run keeps a record of what was up to date, so that it
	// need not look again while nothing changes. Empty means nowhere.
	CacheDir string
}

// A Result is what a run did.
type Result struct {
	// Files are the generated files of the packages, sorted by path.
	Files []File
	// Warnings are about limits that are correct and perhaps not meant.
	Warnings Diagnostics
	// Notes are remarks for the user, one line each, that are no errors.
	Notes []string
}

// Run generates the files of the packages that cfg names. Its error is a
// [Diagnostics] if the input is at fault; nothing is written then.
func Run(cfg Config) (*Result, error) {
	run, err := newRun(cfg)
	if err != nil {
		return nil, err
	}
	if result := run.recall(); result != nil {
		return result, nil
	}
	start := time.Now()
	packages := run.load()
	run.parse(packages)
	checked := run.check(packages)
	run.warnings(checked)
	orphans := run.checkOutputs(packages, checked)
	files := append(run.emit(checked), orphans...)
	if err := run.err(); err != nil {
		return nil, err
	}
	result, err := run.write(packages, files)
	if err == nil {
		run.remember(start, result)
	}
	return result, err
}

// A run is the state of one call of Run.
type run struct {
	reporter
	cfg  Config
	list *listing
	out  *outPackage // nil: wrappers stand next to their interfaces
}

func newRun(cfg Config) (*run, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if real, err := os.Getwd(); err == nil && cfg.Dir == "" {
		dir = real
	}
	cfg.Dir = dir
	if len(cfg.Patterns) == 0 {
		cfg.Patterns = []string{"."}
	}
	r := &run{reporter: reporter{fset: token.NewFileSet(), dir: dir}, cfg: cfg}
	if cfg.Out != "" {
		if r.out, err = r.openOut(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// write brings the generated files up to date, or says which ones are not.
func (r *run) write(packages []*packageDir, files []output) (*Result, error) {
	for _, p := range packages {
		for _, path := range p.orphans {
			files = append(files, output{path: path})
		}
	}
	sortOutputs(files)
	slices.Sort(r.notes)
	if err := r.makeOutDir(); err != nil {
		return nil, err
	}
	result := &Result{Notes: r.notes, Warnings: r.diagnostics()}
	for _, f := range files {
		act := f.apply
		if r.cfg.Check {
			act = f.compare
		}
		status, err := act()
		if err != nil {
			return result, err
		}
		result.Files = append(result.Files, File{shortPath(r.dir, f.path), status})
	}
	return result, nil
}
