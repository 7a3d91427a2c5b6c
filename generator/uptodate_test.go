package generator

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rategen/rategen/generator/internal/cache"
	"github.com/rategen/rategen/generator/internal/output"
	"github.com/rategen/rategen/internal/testkit/scratch"
)

// TestRecord changes, one at a time, everything that generated files depend on:
// a record must not outlive any of it.
func TestRecord(t *testing.T) {
	t.Setenv("GOFLAGS", scratch.Flags())
	t.Setenv("GOWORK", "")
	t.Setenv("GOENV", filepath.Join(t.TempDir(), "env"))
	files := map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26.0\n\nrequire (\n\texample.com/r v0.0.0\n\tgithub.com/rategen/rategen v0.0.0\n)\n\n" +
			"replace (\n\texample.com/r => ./r\n\tgithub.com/rategen/rategen => ./rategen\n)\n",
		"a.go":                       "package m\n\nimport \"example.com/m/dep\"\n\ntype A interface {\n\t//ratelimit:key=#id max=5\n\tDo(id dep.ID, o Other) error\n}\n",
		"other.go":                   "package m\n\nimport \"example.com/r\"\n\ntype Other = r.Type\n",
		"dep/dep.go":                 "package dep\n\ntype ID string\n",
		"r/go.mod":                   "module example.com/r\n\ngo 1.26.0\n",
		"rategen/go.mod":             "module github.com/rategen/rategen\n\ngo 1.26.0\n",
		"rategen/runtime/runtime.go": "package runtime\n",
		"r/r.go":                     "package r\n\ntype Type int\n",
		"empty/x.txt":                "",
		"sub/plain.go":               "package sub\n",
		// None of these is a reason to look again.
		"warned.go":        "package m\n\ntype Warned interface {\n\t//ratelimit:max=5\n\tDo(userID string) error\n}\n",
		"noted_windows.go": "package m\n\ntype Noted interface {\n\t//ratelimit:max=5\n\tDo() error\n}\n",
		"native/native.go": "package native\n\nimport \"C\"\n\ntype T C.int\n",
		"native/user/u.go": "package user\n\nimport _ \"example.com/m/native\"\n",
	}
	write := func(dir, name, content string) func() {
		return func() {
			scratch.Write(t, filepath.Join(dir, name), content)
		}
	}
	dir, cacheDir := t.TempDir(), t.TempDir()
	for name, content := range files {
		write(dir, name, content)()
	}
	config := Config{Dir: dir, Patterns: []string{"./..."}, CacheDir: cacheDir}
	recalled := func() bool {
		return cache.Open(cacheDir, dir, config.Patterns, "").Recall(&Result{})
	}
	anew := config
	anew.CacheDir = ""
	var want *Result // of the files as they are at the start, and each time a change is undone
	settle := func(after string) {
		t.Helper()
		age(t, dir)
		for range 2 { // the first may have to write the generated file again
			if recalled() {
				break
			}
			if _, err := Run(config); err != nil {
				t.Fatal(err)
			}
			age(t, dir)
		}
		if !recalled() {
			t.Fatal("a run that found everything up to date is not recalled after", after)
		}
		if want == nil {
			var err error
			if want, err = Run(anew); err != nil || len(want.Files) < 2 || len(want.Warnings) != 1 || len(want.Notes) != 1 {
				t.Fatal("not what is to be recalled", want, err)
			}
		}
		got, err := Run(config)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("a recalled run has another result after %s (-anew +recalled):\n%s", after, diff)
		}
	}

	if _, err := Run(config); err != nil {
		t.Fatal(err)
	}
	if recalled() {
		t.Error("a run that wrote files is recalled")
	}
	// However long the first run took, a file changes while the next one runs.
	soon := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "other.go"), soon, soon); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(config); err != nil {
		t.Fatal(err)
	}
	if recalled() {
		t.Error("a run over a file that changed after it began is recalled")
	}
	settle("start")
	generated, err := os.ReadFile(filepath.Join(dir, "a_ratelimit.go"))
	if err != nil {
		t.Fatal(err)
	}
	files["a_ratelimit.go"] = string(generated)
	after := "start"
	for name, change := range map[string]func(){
		"the source":                     write(dir, "a.go", files["a.go"]+"\n"),
		"another file of the package":    write(dir, "other.go", "package m\n\ntype Other = string\n"),
		"a new file of the package":      write(dir, "new.go", "package m\n"),
		"a dependency":                   write(dir, "dep/dep.go", "package dep\n\ntype ID int\n"),
		"a new file of a dependency":     write(dir, "dep/new.go", "package dep\n"),
		"a replaced module":              write(dir, "r/r.go", "package r\n\ntype Type string\n"),
		"its go.mod":                     write(dir, "r/go.mod", "module example.com/r\n\ngo 1.25.0\n"),
		"go.mod":                         write(dir, "go.mod", files["go.mod"]+"// more\n"),
		"a new go.sum":                   write(dir, "go.sum", ""),
		"a new package":                  write(dir, "empty/new.go", "package empty\n"),
		"a package without directives":   write(dir, "sub/plain.go", "package sub\n\ntype T int\n"),
		"a new directory":                write(dir, "fresh/new.go", "package fresh\n"),
		"a package that is a module now": write(dir, "sub/go.mod", "module example.com/m/sub\n"),
		"the generated file":             write(dir, "a_ratelimit.go", "package m\n"),
		"a generated file nobody wants":  write(dir, "b_ratelimit.go", output.Header+"\n\npackage m\n"),
		"a generated file, removed":      func() { os.Remove(filepath.Join(dir, "a_ratelimit.go")) },
		"go env":                         write(filepath.Dir(os.Getenv("GOENV")), "env", "GOARCH=arm64\n"),
	} {
		settle(after)
		after = name
		change()
		age(t, dir)
		if recalled() {
			t.Errorf("a change of %s is overlooked", name)
		}
		os.RemoveAll(filepath.Join(dir, "fresh"))
		for _, added := range []string{"new.go", "dep/new.go", "empty/new.go", "sub/go.mod", "go.sum", "b_ratelimit.go"} {
			os.Remove(filepath.Join(dir, added))
		}
		os.Remove(os.Getenv("GOENV"))
		for name, content := range files {
			write(dir, name, content)()
		}
	}
	settle(after)
	if hasCgo(t) {
		// A header may be anywhere, and what it declares decides about types.
		write(dir, "dep/dep.go", "package dep\n\nimport \"example.com/m/native\"\n\ntype ID = native.T\n")()
		for range 2 {
			age(t, dir)
			if _, err := Run(config); err != nil {
				t.Fatal(err)
			}
		}
		if recalled() {
			t.Error("a record is kept of an interface that depends on cgo")
		}
		write(dir, "dep/dep.go", files["dep/dep.go"])()
		settle("cgo")
	}
	t.Setenv("GOOS", "plan9")
	if recalled() {
		t.Error("another GOOS is overlooked")
	}
	t.Setenv("GOFLAGS", "-modfile=other.mod")
	if cache.Open(cacheDir, dir, config.Patterns, "") != nil {
		t.Error("a record is kept of a run with a go.mod of its own")
	}
}

func hasCgo(t *testing.T) bool {
	t.Helper()
	out, err := exec.Command("go", "env", "CGO_ENABLED").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, err = exec.LookPath("gcc")
	return strings.TrimSpace(string(out)) == "1" && err == nil
}
