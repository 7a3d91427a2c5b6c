// Package release tests how releases are made. It would find a nested module that is released with a
// replace directive, by which go install fails, or that requires no version: nobody could see that
// before the tags are pushed.
package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
)

// A clone is a repository with some files of this checkout, and where it pushes to.
type clone struct {
	t           *testing.T
	dir, origin string
}

func newClone(t *testing.T) *clone {
	t.Helper()
	for _, tool := range []string{"bash", "git", "awk"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	c := &clone{t, t.TempDir(), t.TempDir()}
	files := []string{".ci/tag", "runtime/version.go", "generator/internal/emit/emit.go"}
	mods, err := filepath.Glob("../../../*/*/go.mod")
	if err != nil || len(mods) < 3 {
		t.Fatalf("%d nested modules, %v", len(mods), err)
	}
	for _, path := range append(mods, "../../../go.mod", "../../../bench/go.mod") {
		files = append(files, strings.TrimPrefix(filepath.ToSlash(path), "../../../"))
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join("../../..", name))
		limittest.OK(t, err)
		c.write(name, string(text))
	}
	c.write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-12-01\n\n### Added\n\n- All.\n\n## 0.0.9\n\n- Old.\n")
	c.git("init", "-q", "-b", "main")
	c.git("config", "user.name", "Test")
	c.git("config", "user.email", "test@example.com")
	c.git("config", "commit.gpgsign", "false")
	c.git("config", "tag.gpgsign", "false")
	c.git("init", "-q", "--bare", c.origin)
	c.git("remote", "add", "origin", c.origin)
	c.commit()
	return c
}

// copy returns a clone of its own with the same content.
func (c *clone) copy(t *testing.T) *clone {
	t.Helper()
	own := &clone{t, t.TempDir(), t.TempDir()}
	for from, to := range map[string]string{c.dir: own.dir, c.origin: own.origin} {
		limittest.OK(t, os.CopyFS(to, os.DirFS(from)))
	}
	own.git("remote", "set-url", "origin", own.origin)
	return own
}

func (c *clone) write(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clone) read(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

func (c *clone) git(args ...string) string {
	c.t.Helper()
	out, err := c.run("git", args...)
	if err != nil {
		c.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (c *clone) commit() {
	c.git("add", "-A")
	c.git("commit", "-q", "-m", "State")
}

func (c *clone) run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	// A hook that runs the tests sets variables of git's for its own repository.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestTag makes a release of a clone: at first it is only shown, then, in a full run, pushed.
func TestTag(t *testing.T) {
	c := newClone(t)
	out, err := c.run("bash", ".ci/tag", "v0.1.0")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"  v0.1.0\n", "  runtime/rategrpc/v0.1.0\n", "  runtime/raterpc/v0.1.0\n", "  cmd/ratectl/v0.1.0\n", "- All.\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("shows no %q:\n%s", want, out)
		}
	}
	for _, not := range []string{"bench/v0.1.0", "examples/grpc/v0.1.0", "Old."} {
		if strings.Contains(out, not) {
			t.Errorf("shows %q:\n%s", not, out)
		}
	}
	if status := c.git("status", "--porcelain") + c.git("tag"); status != "" {
		t.Errorf("it only had to be shown: %s", status)
	}
	if notes, err := c.run("bash", ".ci/tag", "-notes", "v0.1.0"); err != nil || notes != "### Added\n\n- All.\n\n" {
		t.Errorf("notes %q, %v", notes, err)
	}
	if !effort.Full() {
		return
	}

	if out, err := c.run("bash", ".ci/tag", "-push", "v0.1.0"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var tags []string
	for line := range strings.Lines(c.git("ls-remote", "--tags", "--refs", "origin")) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), "refs/tags/")
		tags = append(tags, name)
	}
	mods := strings.Fields(c.git("ls-files", "runtime/*/go.mod", "generator/*/go.mod", "cmd/*/go.mod"))
	if len(tags) != 1+len(mods) || !slices.Contains(tags, "v0.1.0") || !slices.Contains(tags, "runtime/rateconnect/v0.1.0") {
		t.Errorf("pushed %v", tags)
	}
	for _, name := range strings.Fields(c.git("ls-files", "*/go.mod")) {
		text := c.read(name)
		if strings.Contains(text, "rategen v0.0.0") || !strings.Contains(text, "github.com/rategen/rategen v0.1.0") {
			t.Errorf("%s requires no version:\n%s", name, text)
		}
	}
	if text := c.read("runtime/rategrpc/go.mod"); !strings.Contains(text, "runtime/raterpc v0.1.0") {
		t.Errorf("%s", text)
	}
	if head := c.git("log", "-1", "--format=%s", "v0.1.0"); head != "Release v0.1.0\n" {
		t.Errorf("the commit is %q", head)
	}
	for _, module := range []string{"cmd/ratectl", "runtime/rategrpc"} {
		released, now := c.git("show", module+"/v0.1.0:"+module+"/go.mod"), c.read(module+"/go.mod")
		if strings.Contains(released, "replace") || !strings.Contains(now, "replace github.com/rategen/rategen => ../..") {
			t.Errorf("%s is released with\n%s\nand goes on with\n%s", module, released, now)
		}
	}

	// A second release needs a version of its own, and changes what the first required.
	if out, err := c.run("bash", ".ci/tag", "v0.1.0"); err == nil || !strings.Contains(out, "there is a tag v0.1.0") {
		t.Errorf("the same again: %v\n%s", err, out)
	}
	c.write("CHANGELOG.md", strings.Replace(c.read("CHANGELOG.md"), "## 0.1.0", "## 0.1.1\n\n- Fixed.\n\n## 0.1.0", 1))
	c.commit()
	if out, err := c.run("bash", ".ci/tag", "-push", "v0.1.1"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text := c.read("bench/go.mod"); !strings.Contains(text, "github.com/rategen/rategen v0.1.1") {
		t.Errorf("%s", text)
	}
}

// TestTagRefuses wants each thing that is missing to be named, and nothing to change. In a
// quick run some are missing.
func TestTagRefuses(t *testing.T) {
	all := newClone(t)
	for name, test := range map[string]struct {
		prepare func(*clone)
		tag     string
		want    string
		full    bool
	}{
		"no version":      {nil, "0.1.0", "is no version", true},
		"leading zero":    {nil, "v0.01.0", "is no version", true},
		"no section":      {nil, "v0.1.5", `no section "## 0.1.5"`, true},
		"not clean":       {func(c *clone) { c.write("new", "") }, "v0.1.0", "not clean", false},
		"unreleased":      {func(c *clone) { c.write("CHANGELOG.md", "## Unreleased\n- More.\n## 0.1.0\n- All.\n"); c.commit() }, "v0.1.0", `"Unreleased"`, true},
		"no constant":     {func(c *clone) { c.write("CHANGELOG.md", "## 0.2.0\n- All.\n"); c.commit() }, "v0.2.0", "lacks IsAtLeastVersion0_2_0", true},
		"generated needs": {func(c *clone) { c.write("generator/internal/emit/x.go", "IsAtLeastVersion0_9_0"); c.commit() }, "v0.1.0", "generated code names IsAtLeastVersion0_9_0", true},
		"nested tag":      {func(c *clone) { c.git("tag", "runtime/raterpc/v0.1.0") }, "v0.1.0", "there is a tag runtime/raterpc/v0.1.0", false},
	} {
		if test.full && !effort.Full() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := all.copy(t)
			if test.prepare != nil {
				test.prepare(c)
			}
			before := c.git("status", "--porcelain") + c.git("tag")
			out, err := c.run("bash", ".ci/tag", "-push", test.tag)
			if err == nil || !strings.Contains(out, test.want) {
				t.Errorf("%v, want an error with %q:\n%s", err, test.want, out)
			}
			if after := c.git("status", "--porcelain") + c.git("tag"); after != before {
				t.Errorf("something changed: %s", after)
			}
			if pushed := c.git("ls-remote", "origin"); pushed != "" {
				t.Errorf("pushed %s", pushed)
			}
		})
	}
}
