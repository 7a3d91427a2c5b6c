package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rategen/rategen/generator/internal/output"
)

// inputsOf returns the files and directories that a run in dir depends on, with
// packages read from the source directories. It returns nothing if they cannot
// all be named.
func inputsOf(dir string, patterns, sources []string) map[string]bool {
	paths := map[string]bool{}
	if env := goEnvFile(); env != "" {
		paths[env] = true
		if content, err := os.ReadFile(env); err == nil && namesFile(string(content)) {
			return nil
		}
	}
	if work := os.Getenv("GOWORK"); filepath.IsAbs(work) {
		paths[work] = true
	}
	for _, source := range sources {
		if info, err := os.Stat(source); err == nil && info.IsDir() {
			addDirectory(paths, source)
		} else {
			paths[source] = true
		}
	}
	for _, pattern := range patterns {
		if before, _, isWildcard := strings.Cut(pattern, "..."); isWildcard {
			// The go command walks the directory in which the pattern's first wildcard is.
			root, _ := filepath.Split(before)
			if !addTree(paths, filepath.Join(dir, root), strings.Contains(pattern, "vendor")) {
				return nil
			}
		}
	}
	return paths
}

// addDirectory adds a directory, its Go files, and the files around it that
// choose modules.
func addDirectory(paths map[string]bool, dir string) {
	if paths[dir] {
		return
	}
	paths[dir] = true
	for _, name := range output.GoFiles(dir) {
		paths[filepath.Join(dir, name)] = true
	}
	for {
		for _, name := range []string{"go.mod", "go.sum", "go.work", "go.work.sum", "vendor/modules.txt"} {
			paths[filepath.Join(dir, name)] = true
		}
		parent := filepath.Dir(dir)
		if parent == dir || paths[filepath.Join(parent, "go.mod")] {
			return
		}
		dir = parent
	}
}

// addTree adds the directories in which a pattern may find packages. The root may be a
// symbolic link.
func addTree(paths map[string]bool, root string, vendored bool) bool {
	err := filepath.WalkDir(root+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		path = filepath.Clean(path)
		name := d.Name()
		if path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "vendor" && !vendored) {
			return fs.SkipDir
		}
		addDirectory(paths, path)
		return nil
	})
	return err == nil
}

// goEnvFile returns the file that go env -w writes.
func goEnvFile() string {
	if file := os.Getenv("GOENV"); file != "" {
		if file == "off" {
			return ""
		}
		return file
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "go", "env")
}

// hashInput hashes a file's content, or which Go files, directories and other
// links a directory holds.
func hashInput(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		entries, dirErr := os.ReadDir(path)
		if dirErr != nil {
			return "none"
		}
		var names strings.Builder
		for _, e := range entries {
			if name := e.Name(); !e.Type().IsRegular() || strings.HasSuffix(name, ".go") || name == "go.mod" {
				fmt.Fprintf(&names, "%q %v\n", name, e.Type())
			}
		}
		content = []byte(names.String())
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}
