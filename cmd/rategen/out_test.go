package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// limited is a file that limits an interface and has a go:generate line.
func limited(pkg, name, generate string) string {
	return "package " + pkg + "\n\n//go:generate " + generate + "\n\ntype " + name + " interface {\n\t//ratelimit:key=#id max=5\n\tDo(id string) error\n}\n"
}

// expect runs the command with these arguments, in dir. Its exit code and all that it
// prints must be as wanted.
func expect(t *testing.T, dir string, wantCode int, want string, args ...string) {
	t.Helper()
	if code, out, errs := rategen(dir, args...); code != wantCode || out+errs != want {
		t.Errorf("rategen %s: exit %d\n%s%s\nwant %d\n%s", strings.Join(args, " "), code, out, errs, wantCode, want)
	}
}

// Where one file cannot be written none is, and the error names it. A file keeps its mode.
func TestUnwritable(t *testing.T) {
	// The name of the source file is as long as may be, that of the generated one is longer.
	long := strings.Repeat("z", 250)
	dir := writeModule(t, map[string]string{
		"go.mod":            module["go.mod"],
		"a/a.go":            limited("a", "A", "go tool rategen"),
		"b/b.go":            limited("b", "B", "go tool rategen -out ../new/limits"),
		"z/" + long + ".go": limited("z", "Z", "go tool rategen"),
	})
	before := modes(t, dir)
	if code, out, errs := rategen(dir, "./..."); code != 1 || out != "" || !strings.HasSuffix(errs, long+"_ratelimit.go: file name too long\n") {
		t.Errorf("exit %d\nstdout: %sstderr: %s", code, out, errs)
	}
	if diff := cmp.Diff(before, modes(t, dir)); diff != "" {
		t.Error("files changed: ", diff)
	}
	os.RemoveAll(filepath.Join(dir, "z"))
	expect(t, dir, 0, "", "./...")
	generated := filepath.Join(dir, "a", "a_ratelimit.go")
	os.WriteFile(generated, nil, 0o644)
	os.Chmod(generated, 0o440)
	expect(t, dir, 0, "", "./...")
	if info, err := os.Stat(generated); err != nil || info.Mode() != 0o440 || info.Size() == 0 {
		t.Error(info, err)
	}
}

// modes returns the modes of the files in a directory and below.
func modes(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	found := map[string]fs.FileMode{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			found[path] = d.Type()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A package's lines are read as go generate reads them.
func TestGenerateLines(t *testing.T) {
	const a = "package svc\n\ntype A interface {\n\t//ratelimit:key=#id max=5\n\tDo(id string) error\n}\n"
	for name, file := range map[string]string{
		"tag":       "//go:build generate\n\npackage svc\n\n//go:generate go tool rategen -out ../limits\n",
		"tab":       "package svc\n\n//go:generate\tgo\ttool rategen -out ../limits\n",
		"command":   "package svc\n\n//go:generate -command limit go tool rategen -out\n//go:generate limit ../limits\n",
		"directory": "package svc\n\n//go:generate go tool rategen -out $PWD/../limits\n",
		"words":     "package svc\n\n//go:generate go tool \"rategen\" \"-out\" \"../lim\\x69ts\"\r\n",
		"package":   "package svc_test\n\n//go:generate go tool rategen -out ../limits -pkg ${GOPACKAGE}s\n",
		"version":   "package svc\n\n//go:generate go run example.com/rategen@v1 -out ../limits\n",
		// go generate does not come to these.
		"other tag":  "//go:build !generate\n\npackage svc\n\n//go:generate go tool rategen -out ../limits\n",
		"ignored":    "//go:build ignore\n\npackage svc\n\n//go:generate go tool rategen -out ../limits\n",
		"quotes":     "package svc\n\n//go:generate echo \"a\"b\n//go:generate go tool rategen -out ../limits\n",
		"incomplete": "package svc\n\n//go:generate go tool rategen -out ../limits",
		"cut off":    "package svc\n\n//go:generate",
		"no blank":   "package svc\n\n//go:generated go tool rategen -out ../limits\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := "lines.go"
			if name == "package" {
				lines = "lines_test.go"
			}
			want := "limits"
			switch name {
			case "other tag", "ignored", "quotes", "incomplete", "cut off", "no blank":
				want = "svc"
			}
			dir := writeModule(t, map[string]string{"go.mod": module["go.mod"], "svc/a.go": a, "svc/" + lines: file})
			expect(t, dir, 0, want+"/a_ratelimit.go: wrote\n", "-v", "./...")
		})
	}
}
