// Package release tests how releases are made. It would find a nested module that is released with a
// replace directive, by which go install fails, or that requires no version: nobody could see that
// before the tags are pushed.
package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/scratch"
)

// beginning makes a repository of what a directory holds, and where it pushes to.
const beginning = `
git init -q -b main
git config user.name Test
git config user.email test@example.com
git config commit.gpgsign false
git config tag.gpgsign false
git init -q --bare ../origin
git remote add origin ../origin
git add -A
git commit -qm State
`

// TestTag plays each testdata/*.txt in a repository with some files of this checkout. Below sh stand commands, and what
// they print. Those below refused have a repository of their own, and must leave it as it is. A quick run
// leaves out what is full.
func TestTag(t *testing.T) {
	for _, tool := range []string{"bash", "git", "awk"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	mods, err := filepath.Glob("../../../*/*/go.mod")
	limittest.OK(t, err)
	files := map[string]string{"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-12-01\n\n### Added\n\n- All.\n\n## 0.0.9\n\n- Old.\n"}
	for _, path := range append(mods, "../../../go.mod", "../../../bench/go.mod", "../../../.ci/tag", "../../../runtime/version.go",
		"../../../generator/internal/emit/emit.go") {
		text, err := os.ReadFile(path)
		limittest.OK(t, err)
		files[strings.TrimPrefix(filepath.ToSlash(path), "../../../")] = string(text)
	}
	begin := func(t *testing.T) string {
		dir := filepath.Join(t.TempDir(), "clone")
		for name, text := range files {
			scratch.Write(t, filepath.Join(dir, name), text)
		}
		shell(dir, beginning)
		return dir
	}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		dir := begin(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.HasArg("full") && !effort.Full() {
				return d.Expected
			}
			if d.Cmd == "sh" {
				return shell(dir, d.Input)
			}
			own := begin(t)
			lines := strings.Split(d.Input, "\n")
			command := len(lines) - 1
			shell(own, strings.Join(lines[:command], "\n"))
			state := func() string { return shell(own, "git status --porcelain; git tag; git ls-remote origin") }
			before := state()
			said := shell(own, lines[command])
			return said + before + strings.TrimPrefix(state(), before)
		})
	})
}

// shell runs commands, and returns what they print and how the last one ends.
func shell(dir, script string) string {
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = dir
	// A hook that runs the tests sets variables of git's for its own repository.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s%v\n", out, err)
	}
	return string(out)
}
