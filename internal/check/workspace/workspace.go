// Package workspace has checks look at the modules of a checkout together: each of their
// dependencies has one version then, and is compiled once.
package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Modules returns the directories of all modules of a checkout, in order and relative to it:
// its own, which is ".", and those that are nested in it. Those in testdata are input of
// tests.
func Modules(checkout string) (dirs []string, err error) {
	err = filepath.WalkDir(checkout, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if err != nil {
			return err
		}
		if entry.IsDir() && path != checkout && (name == "testdata" || strings.HasPrefix(name, ".")) {
			return fs.SkipDir
		}
		if name == "go.mod" {
			dir, err := filepath.Rel(checkout, filepath.Dir(path))
			dirs = append(dirs, filepath.ToSlash(dir))
			return err
		}
		return nil
	})
	return dirs, err
}

// Write writes a go.work with modules of a checkout, and more modules, whose directories are
// relative to that of the file.
func Write(path, checkout string, modules []string, more ...string) error {
	text := "go 1.26.0\n"
	for _, dir := range more {
		text += fmt.Sprintf("\nuse %q", dir)
	}
	for _, module := range modules {
		dir, err := filepath.Abs(filepath.Join(checkout, module))
		if err != nil {
			return err
		}
		text += fmt.Sprintf("\nuse %q", dir)
	}
	return os.WriteFile(path, []byte(text+"\n"), 0o644)
}
