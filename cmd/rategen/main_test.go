package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/testkit/scratch"
)

// A module without dependencies: the generated code is not compiled here.
var module = map[string]string{
	"go.mod": "module example.com/m\n\ngo 1.26.0\n",
	"a.go":   "package m\n\ntype A interface {\n\t//ratelimit:key=#id max=5\n\tDo(id string) error\n}\n",
}

// Tests leave the user's cache and settings alone.
func TestMain(m *testing.M) {
	os.Setenv("RATEGEN_CACHE", "off")
	os.Setenv("GOFLAGS", scratch.Flags())
	os.Setenv("GOWORK", "off")
	os.Exit(m.Run())
}

func writeModule(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		scratch.Write(t, filepath.Join(dir, name), content)
	}
	return dir
}

func rategen(dir string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, &out, &errs, dir)
	return code, out.String(), errs.String()
}

func TestLifeOfAFile(t *testing.T) {
	t.Parallel()
	dir := writeModule(t, module)
	expect := func(wantCode int, wantOut, wantErr string, args ...string) {
		t.Helper()
		if code, out, errs := rategen(dir, args...); code != wantCode || out != wantOut || errs != wantErr {
			t.Errorf("rategen %s: exit %d\nstdout: %sstderr: %s", strings.Join(args, " "), code, out, errs)
		}
	}
	expect(1, "", "a_ratelimit.go: missing: run go generate\n", "-check")
	expect(0, "a_ratelimit.go: wrote\n", "", "-v")
	expect(0, "a_ratelimit.go: unchanged\n", "", "-v", "./...")
	expect(0, "", "", "-check", "./...")
	info, err := os.Stat(filepath.Join(dir, "a_ratelimit.go"))
	if err != nil {
		t.Fatal(err)
	}
	expect(0, "", "")
	if again, err := os.Stat(filepath.Join(dir, "a_ratelimit.go")); err != nil || !again.ModTime().Equal(info.ModTime()) || !os.SameFile(info, again) {
		t.Error("a file that was up to date was written again")
	}

	// A licence that somebody puts before it stays.
	const licence = "// Copyright of somebody.\n\n"
	generated, err := os.ReadFile(filepath.Join(dir, "a_ratelimit.go"))
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(dir, "a_ratelimit.go"), append([]byte(licence), generated...), 0o644)
	expect(0, "", "", "-check", "./...")

	edited := strings.Replace(module["a.go"], "max=5", "max=6", 1)
	os.WriteFile(filepath.Join(dir, "a.go"), []byte(edited), 0o644)
	expect(1, "", "a_ratelimit.go: stale: run go generate\n", "-check")
	expect(0, "a_ratelimit.go: wrote\n", "", "-v")
	if after, err := os.ReadFile(filepath.Join(dir, "a_ratelimit.go")); err != nil || string(after) != licence+strings.Replace(strings.ReplaceAll(string(generated), "to 5 ", "to 6 "), "Max:    5", "Max:    6", 1) {
		t.Error(err, string(after))
	}

	os.WriteFile(filepath.Join(dir, "a.go"), []byte("package m\n"), 0o644)
	expect(1, "", "a_ratelimit.go: stale: run go generate\n", "-check")
	expect(0, "a_ratelimit.go: removed\n", "", "-v")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Error("leftovers:", entries, err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]string
		args  []string
		code  int
		want  string // is contained in standard error
	}{
		{"flag", nil, []string{"-nonsense"}, 2, "usage: rategen"},
		{"package without directory", nil, []string{"-pkg", "x"}, 2, "add -out"},
		{"no package name", nil, []string{"-out", "b-c"}, 1, "\"b-c\" cannot be the name of the package in b-c: choose one with -pkg"},
		{"other package name", map[string]string{"b/b.go": "package b\n"}, []string{"-out", "b", "-pkg", "c"}, 1, "-pkg c: b/b.go belongs to package b"},
		{"no module", nil, []string{"-out", "/"}, 1, "is in no module"},
		{"no such package", nil, []string{"./nowhere"}, 1, "nowhere"},
		{"no such package to list", nil, []string{"list", "./nowhere"}, 1, "nowhere"},
		{"flag of list", nil, []string{"list", "-nonsense"}, 2, "usage: rategen list"},
		{"nothing matches", map[string]string{"empty/x.txt": ""}, []string{"./empty/..."}, 1, "no packages match ./empty/..."},
		{"another module's package", nil, []string{".", "fmt"}, 1, "package fmt is not in the main module: run rategen in the module that it belongs to"},
		{"another module's packages", nil, []string{"fmt/..."}, 1, "no packages of the main module match fmt/..."},
		{"file", nil, []string{"a.go"}, 1, "name packages, not files"},
		{"misspelt", map[string]string{"a.go": "package m\n\ntype A interface {\n\t//ratelimit:widnow=5s\n\tDo() error\n}\n"}, nil, 1,
			"a.go:4:14: unknown option \"widnow\" (did you mean \"window\"?)\n"},
		{"untidy module", map[string]string{"go.mod": "module example.com/m\n\ngo 1.26.0\n\nrequire example.com/none v1.0.0\n", "vendor/modules.txt": ""}, nil, 1, "the go command cannot list .: go: inconsistent vendoring"},
		{"no module", map[string]string{"go.mod": "nonsense"}, nil, 1, "the go command cannot list .: go: errors parsing go.mod"},
		{"symbolic link", nil, []string{"./link"}, 1, "not a regular file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			for name, content := range module {
				files[name] = content
			}
			for name, content := range c.files {
				files[name] = content
			}
			dir := writeModule(t, files)
			if c.name == "symbolic link" {
				os.Mkdir(filepath.Join(dir, "link"), 0o755)
				os.WriteFile(filepath.Join(dir, "link", "a.go"), []byte(module["a.go"]), 0o644)
				os.Symlink("../go.mod", filepath.Join(dir, "link", "a_ratelimit.go"))
			}
			code, out, errs := rategen(dir, c.args...)
			if code != c.code || !strings.Contains(errs, c.want) || out != "" {
				t.Errorf("exit %d\nstdout: %s\nstderr: %s\nwant %d and %q", code, out, errs, c.code, c.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "a_ratelimit.go")); err == nil {
				t.Error("a file was written in spite of an error")
			}
		})
	}
}

// The manual is written by hand; every option must be in it as the generator
// describes it.
func TestManual(t *testing.T) {
	code, out, errs := rategen("", "-h")
	if code != 0 || errs != "" {
		t.Error("-h: exit", code, errs)
	}
	text := strings.Join(strings.Fields(out), " ")
	for _, o := range generator.Options() {
		if !strings.Contains(text, " "+o.Name+"="+o.Value+": ") {
			t.Errorf("the manual does not name the option %s", o.Name)
		}
	}
	for _, flag := range []string{"-check", "-v ", "-json", "-out", "-pkg", "-tags", "-version", "-h"} {
		if !strings.Contains(text, flag) {
			t.Errorf("the manual does not name the flag %s", flag)
		}
	}
	if code, out, _ := rategen("", "-version"); code != 0 || !strings.HasPrefix(out, "rategen ") {
		t.Error("-version:", code, out)
	}
}

func TestWarningsAndJSON(t *testing.T) {
	t.Parallel()
	dir := writeModule(t, map[string]string{
		"go.mod": module["go.mod"],
		"a.go":   "package m\n\ntype A interface {\n\t//ratelimit:key=#id max=500\n\tDo(id string) error\n}\n",
		"b/b.go": "package b\n\ntype B interface {\n\t//ratelimit: key=#id\n\tDo(id string) error\n}\n",
	})
	code, out, errs := rategen(dir)
	if code != 0 || out != "" || !strings.HasPrefix(errs, "a.go:4:26: warning: max: ") {
		t.Errorf("warning: exit %d\nstdout: %sstderr: %s", code, out, errs)
	}
	code, out, errs = rategen(dir, "-json", "-check", "./...")
	want := `{"file":"b/b.go","line":4,"column":14,"endLine":4,"endColumn":22,"severity":"error","message":"blank after the colon: write //ratelimit:key=#id","text":" key=#id",` +
		`"fix":{"message":"remove the blank after the colon","line":4,"column":14,"endLine":4,"endColumn":15,"newText":""}}` + "\n"
	if code != 1 || errs != "" || out != want {
		t.Errorf("-json: exit %d\nstdout: %sstderr: %s", code, out, errs)
	}
	code, out, errs = rategen(dir, "-json", "-v")
	if code != 0 || errs != "" || strings.Count(out, "\n") != 1 || !strings.Contains(out, `"severity":"warning"`) ||
		!strings.Contains(out, `"fix":{"message":"add storage=packed","line":4,"column":29,"endLine":4,"endColumn":29,"newText":" storage=packed"}`) {
		t.Errorf("-json: exit %d\nstdout: %sstderr: %s", code, out, errs)
	}
	os.WriteFile(filepath.Join(dir, "a_ratelimit.go"), nil, 0o644)
	code, out, errs = rategen(dir, "-json", "-check")
	if want := `{"file":"a_ratelimit.go","severity":"error","message":"stale: run go generate"}` + "\n"; code != 1 || errs != "" || !strings.HasSuffix(out, want) {
		t.Errorf("-json -check: exit %d\nstdout: %sstderr: %s", code, out, errs)
	}
	if code, out, _ := rategen(dir, "-json", "./nowhere"); code != 1 || !strings.HasPrefix(out, `{"severity":"error","message":"`) {
		t.Errorf("-json: exit %d\nstdout: %s", code, out)
	}
}

// A full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// What cannot be printed is a failure, whatever the command.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := writeModule(t, module)
	for _, args := range []string{"-h", "-version", "-v ./...", "list ./...", "list -json ./...", "list -h", "explain a.go:4", "explain -json a.go:4"} {
		var errs bytes.Buffer
		if code := run(strings.Fields(args), full{}, &errs, dir); code != inputError || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("rategen %s: exit %d, %q", args, code, errs.String())
		}
	}
}
