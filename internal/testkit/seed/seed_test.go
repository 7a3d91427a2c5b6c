package seed_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/seed"
)

// TestRapid has rapid draw twice what is drawn first.
func TestRapid(t *testing.T) {
	var first []int64
	for range 2 {
		rapid.Check(t, func(t *rapid.T) { first = append(first, rapid.Int64().Draw(t, "n")) })
	}
	if half := len(first) / 2; first[1] != first[half+1] || first[half-1] != first[2*half-1] {
		t.Errorf("%d, %d are drawn, and then %d, %d", first[1], first[half-1], first[half+1], first[2*half-1])
	}
	if a, b := seed.New(t).Uint64(), seed.New(t).Uint64(); a != b {
		t.Errorf("%d, and then %d", a, b)
	}
}

// TestEveryPackage finds packages whose tests use rapid, and not seed.
func TestEveryPackage(t *testing.T) {
	uses := map[string]map[string]bool{"pgregory.net/rapid": {}, "github.com/rategen/rategen/internal/testkit/seed": {}}
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			if dirs := uses[strings.Trim(i.Path.Value, `"`)]; dirs != nil {
				dirs[filepath.Dir(path)] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(uses["pgregory.net/rapid"]) < 5 {
		t.Fatalf("only %d packages use rapid", len(uses["pgregory.net/rapid"]))
	}
	for dir := range uses["pgregory.net/rapid"] {
		if !uses["github.com/rategen/rategen/internal/testkit/seed"][dir] {
			t.Errorf("%s: import internal/testkit/seed, so that its tests try the same in every run", dir)
		}
	}
}
