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
	"github.com/rategen/rategen/internal/testkit/scratch"
	"golang.org/x/tools/txtar"
)

// TestRecord changes, one at a time, everything that generated files depend on:
// a record must not outlive any of it.
func TestRecord(t *testing.T) {
	t.Setenv("GOFLAGS", scratch.Flags())
	t.Setenv("GOWORK", "")
	t.Setenv("GOENV", filepath.Join(t.TempDir(), "env"))
	archive, err := txtar.ParseFile("testdata/record.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files, changes := map[string]string{}, map[string]func(){}
	write := func(dir, name, content string) func() {
		return func() {
			scratch.Write(t, filepath.Join(dir, name), content)
		}
	}
	dir, cacheDir := t.TempDir(), t.TempDir()
	for _, f := range archive.Files {
		if name, isChange := strings.CutPrefix(f.Name, "change/"); isChange {
			changes[name] = write(dir, name, string(f.Data))
		} else {
			files[name] = string(f.Data)
			write(dir, name, files[name])()
		}
	}
	changes["a removed file"] = func() { os.Remove(filepath.Join(dir, "a_ratelimit.go")) }
	changes["go env"] = write(filepath.Dir(os.Getenv("GOENV")), "env", "GOARCH=arm64\n")
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
	for name, change := range changes {
		settle(after)
		after = name
		change()
		age(t, dir)
		if recalled() {
			t.Errorf("a change of %s is overlooked", name)
		}
		os.RemoveAll(filepath.Join(dir, "fresh"))
		if _, before := files[name]; !before {
			os.Remove(filepath.Join(dir, name))
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
