package generator_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/scratch"
	"github.com/rategen/rategen/internal/testkit/typecheck"
	"golang.org/x/tools/txtar"
)

// TestModules runs every testdata/modules/*.txtar: what depends on go.mod,
// go.work, vendor directories, build tags or cgo. An archive holds whole
// modules, in whose go.mod REQUIRE stands for what generated code requires, and a
// file "script". Each of its lines is a directory and a command: go, rategen with
// -tags and patterns, which generates, or check with those, which checks types. A line
// that starts with "full" is run with RATEGEN_TEST_FULL=1 only. The file
// "want" names the generated files that are there in the end.
func TestModules(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	archives, err := filepath.Glob("../testdata/modules/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives in testdata/modules", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			modules(t, archive)
		})
	}
}

func modules(t *testing.T, archive *txtar.Archive) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir, script, want := scratch.Dir(t, root), "", ""
	fill := strings.NewReplacer("REQUIRE\n", scratch.Requirements(string(mod), root))
	for _, f := range archive.Files {
		switch f.Name {
		case "script":
			script = string(f.Data)
		case "want":
			want = string(f.Data)
		default:
			scratch.Write(t, filepath.Join(dir, f.Name), fill.Replace(string(f.Data)))
			if filepath.Base(f.Name) == "go.mod" {
				scratch.Write(t, filepath.Join(dir, filepath.Dir(f.Name), "go.sum"), string(sum))
			}
		}
	}
	for line := range strings.Lines(script) {
		line, full := strings.CutPrefix(line, "full ")
		if full && !effort.Full() {
			continue
		}
		words := strings.Fields(line)
		at, args := filepath.Join(dir, words[0]), words[2:]
		if words[1] == "rategen" {
			config := generator.Config{Dir: at}
			for _, arg := range args {
				if tags, ok := strings.CutPrefix(arg, "-tags="); ok {
					config.Tags = tags
				} else {
					config.Patterns = append(config.Patterns, arg)
				}
			}
			if _, err := generator.Run(config); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			continue
		}
		if words[1] == "check" {
			typecheck.Test(t, at, args...)
			continue
		}
		cmd := exec.Command(words[1], args...)
		cmd.Dir = at
		cmd.Env = append(cmd.Environ(), "GOFLAGS="+scratch.Flags("-vet=off"), "GOPROXY=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	var got []string
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.Contains(d.Name(), "_ratelimit") {
			got = append(got, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
