package generator

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rategen/rategen/internal/testkit/scratch"
)

// FuzzPatterns generates for whatever may name packages. A run that a record answers says
// what one without a record does, also when there is another package.
func FuzzPatterns(f *testing.F) {
	for _, pattern := range []string{
		"", ".", "./", "./...", "./serv...", "./serv.../", "./service...", "./service/...", "./.../a", "./s...e/...", "./none...", "./none/...", "./none",
		"./link/...", "./link...", "./link", "./vendor/...", "./v...", "./testdata/...", "./_x/...", "./.x...", "././/service/../...", "./services/.../...",
		"...", "....", "./....", "../...", "/...", "/", "-", "--", "all", "std", "work", "tool", "example.com/m/...", "example.com/m/serv...", "fmt", "a.go", "./a.go",
		"./...@v1", "./\x00...", "./*", "\xff", "./service ./services", "~/...",
	} {
		f.Add(pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		t.Setenv("GOFLAGS", scratch.Flags())
		t.Setenv("GOWORK", "off")
		dir := t.TempDir()
		source := func(pkg string) string {
			return fmt.Sprintf("package %s\n\ntype A interface {\n\t//ratelimit:max=5\n\tDo() error\n}\n", pkg)
		}
		scratch.Write(t, filepath.Join(dir, "go.mod"), "module example.com/m\n\ngo 1.26.0\n\nrequire github.com/rategen/rategen v0.0.0\n\nreplace github.com/rategen/rategen => ./rategen\n")
		scratch.Write(t, filepath.Join(dir, "rategen/go.mod"), "module github.com/rategen/rategen\n\ngo 1.26.0\n")
		scratch.Write(t, filepath.Join(dir, "rategen/runtime/runtime.go"), "package runtime\n")
		for _, path := range []string{"a.go", "service/a.go", "services/a/a.go", "testdata/a.go", "_x/a.go", ".x/a.go", "other/deep/a.go"} {
			scratch.Write(t, filepath.Join(dir, path), source("a"))
		}
		if err := os.Symlink("other", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		config := Config{Dir: dir, Patterns: []string{pattern}, CacheDir: filepath.Join(t.TempDir(), "cache")}
		anew := config
		anew.CacheDir = ""
		run := func(cfg Config) string {
			result, err := Run(cfg)
			if err != nil {
				if strings.Contains(err.Error(), "please report it") {
					t.Fatal(err)
				}
				return err.Error()
			}
			return fmt.Sprint(result.Files, result.Warnings, result.Notes)
		}
		for range 2 { // the first run writes the files, the second keeps a record
			run(config)
			age(t, dir)
		}
		for _, added := range []string{"serv/b.go", "link/new/b.go", "services/a/b/b.go"} {
			scratch.Write(t, filepath.Join(dir, added), source("b"))
		}
		age(t, dir)
		config.Check, anew.Check = true, true
		if diff := cmp.Diff(run(anew), run(config)); diff != "" {
			t.Errorf("%q: (-without a record +with one)\n%s", pattern, diff)
		}
	})
}

// age makes the files of a directory an hour old, so that a record of them can be kept.
func age(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		old := time.Now().Add(-time.Hour)
		if err == nil {
			err = os.Chtimes(path, old, old)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
