package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sources are the texts of files by their paths, without indentation: what a page shows
// of a file may be indented less.
type Sources map[string]string

// ReadSources reads the files below a directory that have one of the extensions. Paths
// are relative to it.
func ReadSources(dir string, extensions ...string) (Sources, error) {
	all := Sources{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains(extensions, filepath.Ext(path)) {
			return err
		}
		text, err := fs.ReadFile(os.DirFS(dir), path)
		all[path] = unindented(string(text))
		return err
	})
	return all, err
}

// With returns the paths of the files that contain a piece of text.
func (s Sources) With(text string) []string {
	var paths []string
	for path, content := range s {
		if strings.Contains(content, unindented(text)) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// unindented returns text without the blanks that its lines begin with.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t ")
	}
	return strings.Join(lines, "\n")
}
