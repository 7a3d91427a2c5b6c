package load

import (
	"go/token"
	"os"
	"path/filepath"
	"slices"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
)

// A Place is the package that the wrappers of another package are written to.
// The //go:generate line that runs rategen says which, so that every command knows
// it; the flags of a run may say the same.
type Place struct {
	Dir  string         // absolute
	Name string         // of the package; "" for the one that its files or its directory have
	Pos  token.Position // of the line; no position if only the flags say so
}

func absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// sameDir reports whether two paths name one directory, which need not exist.
func sameDir(a, b string) bool { return a == b || realPath(a) == realPath(b) }

// realPath resolves the symbolic links in the part of a path that exists.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return real
	}
	return filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
}

// findPlace decides where the wrappers of a package go. It reports lines and
// flags that do not agree.
func (p *Program) findPlace(d *dir, lines []generateLine) {
	var flag *Place
	if p.cfg.Out != "" {
		flag = &Place{Dir: absolute(p.cfg.Out, p.cfg.Dir), Name: p.cfg.OutName}
	}
	if len(lines) == 0 {
		d.place = flag
		return
	}
	d.place = lines[0].place
	where := func(place *Place) string {
		if place == nil {
			return "next to their interfaces"
		}
		return "to " + p.report.Short(place.Dir)
	}
	same := func(a, b *Place) bool {
		return a == nil && b == nil || a != nil && b != nil && sameDir(a.Dir, b.Dir) && (a.Name == b.Name || a.Name == "" || b.Name == "")
	}
	for _, other := range lines[1:] {
		if !same(d.place, other.place) {
			p.report.AtPosition(other.pos, "this line writes the wrappers of package %s %s, and %s:%d writes them %s: make them agree",
				d.path, where(other.place), p.report.Short(lines[0].pos.Filename), lines[0].pos.Line, where(d.place))
		}
	}
	if flag != nil && !same(d.place, flag) {
		p.report.AtPosition(lines[0].pos, "this line writes the wrappers of package %s %s, and the flag -out %s: make them agree", d.path, where(d.place), where(flag))
	}
}

// checkModule reports a place in a module that does not belong to the workspace of the
// package: nothing there could import it.
func (p *Program) checkModule(d *dir) {
	l := p.list.pkgs[d.path]
	if d.place == nil || l == nil || l.Module == nil {
		return
	}
	root := moduleRoot(d.place.Dir)
	if root == "" || sameDir(root, l.Module.Dir) || slices.ContainsFunc(p.list.modules(), func(dir string) bool { return sameDir(dir, root) }) {
		return
	}
	p.report.AtPosition(d.place.Pos, "-out: %s belongs to the module in %s, and package %s to module %s: choose a directory of that, or let a workspace have both",
		p.report.Short(d.place.Dir), p.report.Short(root), d.path, l.Module.Path)
}

// moduleRoot returns the directory of the module that a directory, which need not exist,
// belongs to, or "".
func moduleRoot(dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && info.Mode().IsRegular() {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// WarnPlaces warns of packages whose place only the flags of this run say, so that
// another command does not know it.
func (p *Program) WarnPlaces() {
	if p.report.HasErrors() {
		return
	}
	for _, d := range p.dirs {
		if i := slices.IndexFunc(d.sources, func(src *directive.File) bool { return len(src.Decls) > 0 }); i >= 0 && d.place != nil && !d.movesOut() {
			flags := "-out " + p.cfg.Out
			if rel, err := filepath.Rel(d.dir, d.place.Dir); err == nil {
				flags = "-out " + filepath.ToSlash(rel)
			}
			if d.place.Name != "" {
				flags += " -pkg " + d.place.Name
			}
			p.report.Warn(diag.UnknownOut, d.sources[i].Syntax.Name.Pos(), "no line of package %s says that its wrappers go to %s, so other commands, such as rategen -check ./..., do not know it: write %sgo tool rategen %s",
				d.path, p.report.Short(d.place.Dir), generatePrefix+" ", flags)
		}
	}
}

// movesOut reports whether a line of the package says that its wrappers go
// elsewhere: those in its own directory are superfluous then.
func (d *dir) movesOut() bool { return d.place != nil && d.place.Pos.IsValid() }

// Places returns where wrappers of packages go, if not next to their interfaces:
// one place for each package that has another.
func (p *Program) Places() []*Place {
	var places []*Place
	for _, d := range p.dirs {
		if d.place != nil {
			places = append(places, d.place)
		}
	}
	return places
}

// PathsTo returns the import paths of the packages whose wrappers go to a
// directory, and their source files that build constraints exclude from this
// run.
func (p *Program) PathsTo(dir string) (pkgs, excluded []string) {
	for _, d := range p.dirs {
		if d.place != nil && d.place.Dir == dir {
			pkgs, excluded = append(pkgs, d.path), append(excluded, d.excluded...)
		}
	}
	return pkgs, excluded
}
