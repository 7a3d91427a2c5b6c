package generator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/emit"
	"github.com/rategen/rategen/generator/internal/load"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/generator/internal/output"
	"github.com/rategen/rategen/generator/internal/parallel"
)

// A Result is what a run did.
type Result struct {
	// Files are the generated files of the packages, sorted by path.
	Files []File
	// Warnings are about limits that are correct and perhaps not meant.
	Warnings Diagnostics
	// Notes are remarks for the user, one line each, that are no errors.
	Notes []string
}

// A File is a generated file.
type File struct {
	// Path is relative to the working directory if the file is below it.
	Path   string
	Status Status
}

// A Status is what became of a generated file, or under [Config].Check what
// would become of it.
type Status string

const (
	Wrote     = Status(output.Wrote)     // it was new or had changed
	Unchanged = Status(output.Unchanged) // it was up to date and not touched
	Removed   = Status(output.Removed)   // no source file asks for it any more
	Stale     = Status(output.Stale)     // Check: it has to be written anew or removed
	Missing   = Status(output.Missing)   // Check: it does not exist
)

// emitFiles returns the generated files as they should be.
func emitFiles(files []*model.File, report *diag.Reporter) []output.File {
	outputs := make([]output.File, len(files))
	parallel.Do(len(files), func(i int) {
		f := files[i]
		report.Guard(f.Source.Syntax.Package, func() {
			outputs[i] = output.File{Path: f.Out.Path(f.Source.Path), Content: render(f, report)}
		})
		files[i] = nil // all that was known of it may go
	})
	return outputs
}

// render returns the file that is generated for a source file. It reports what
// cannot be written where it is declared.
func render(f *model.File, report *diag.Reporter) []byte {
	content, err := emit.Render(f)
	if err == nil {
		return content
	}
	var hidden *emit.HiddenError
	if errors.As(err, &hidden) {
		report.At(cmp.Or(hidden.Pos, f.Wrappers[0].Decl.Spec.Name.Pos()), "%v", err)
		return nil
	}
	for _, w := range f.Wrappers {
		alone := *f
		alone.Wrappers = []*model.Wrapper{w}
		if _, err := emit.Render(&alone); err != nil {
			report.Unwritable(w.Decl.Spec.Name.Pos(), err)
			return nil
		}
	}
	report.Unwritable(f.Source.Syntax.Package, err)
	return nil
}

// orphansOf returns the generated files that are to be removed: no source file
// asks for them any more, in this build or in another.
func orphansOf(p *load.Program, outs map[string]*output.Package, asked []output.File) []output.File {
	paths := p.Orphans()
	for dir, out := range outs {
		_, excluded := p.PathsTo(dir)
		paths = append(paths, out.Orphans(func(path string) bool {
			return slices.ContainsFunc(asked, func(f output.File) bool { return f.Path == path }) ||
				slices.ContainsFunc(excluded, func(source string) bool { return out.Path(source) == path })
		})...)
	}
	var orphans []output.File
	for _, path := range paths {
		orphans = append(orphans, output.File{Path: path})
	}
	return orphans
}

// writeFiles brings the generated files up to date, or says which ones are not.
func writeFiles(cfg Config, files []output.File, report *diag.Reporter) (*Result, error) {
	slices.SortFunc(files, func(a, b output.File) int { return strings.Compare(a.Path, b.Path) })
	result := &Result{Notes: report.SortedNotes(), Warnings: diagnosticsOf(report)}
	act := output.Apply
	if cfg.Check {
		act = output.Compare
	}
	statuses, err := act(files)
	for i, status := range statuses {
		result.Files = append(result.Files, File{report.Short(files[i].Path), Status(status)})
	}
	return result, err
}

// addOthers adds what is missing of other builds, if the run is a check, and says so if there
// is nothing at all.
func (r *Result) addOthers(cfg Config, p *load.Program, report *diag.Reporter) {
	if n := p.Empty(); n > 0 && len(r.Files) == 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("0 directives in %d packages: name others, as ./... does, or write one such as %smax=100 above a method", n, directive.Prefix))
	}
	if !cfg.Check {
		if slices.ContainsFunc(r.Files, func(f File) bool { return f.Status == Wrote }) && p.IsUntidy() {
			r.Notes = append(r.Notes, "go.mod lacks what the generated code imports: run go mod tidy")
		}
		return
	}
	for _, path := range p.MissingElsewhere() {
		r.Files = append(r.Files, File{report.Short(path), Missing})
	}
	slices.SortFunc(r.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
}

// upToDate reports whether all files were up to date.
func (r *Result) upToDate() bool {
	return !slices.ContainsFunc(r.Files, func(f File) bool { return f.Status != Unchanged })
}
