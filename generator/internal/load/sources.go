package load

import (
	"path/filepath"
	"strings"
)

// Sources returns the paths on which the outcome of a run depends: the
// directories of packages that somebody edits, and a file that changes with the
// toolchain. It returns nothing if they cannot all be named.
func (p *Program) Sources() []string {
	var paths []string
	for _, l := range p.list.pkgs {
		switch {
		case l.Error != nil || l.Dir == "" && l.ImportPath != "unsafe" && l.ImportPath != "C":
			return nil // it may come to be in a place that is not known yet
		case l.Standard || l.Dir == "":
			continue
		case l.isDownloaded() && !strings.Contains(l.Dir, string(filepath.Separator)+"vendor"+string(filepath.Separator)):
			continue
		case len(l.CgoFiles) > 0:
			return nil // headers count too
		}
		paths = append(paths, l.Dir)
	}
	if l := p.list.pkgs["internal/goarch"]; l != nil {
		paths = append(paths, filepath.Join(l.Dir, "..", "..", "..", "VERSION"))
	}
	return paths
}
