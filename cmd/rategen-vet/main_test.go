package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/scratch"
)

// The command works as go vet's tool, in a package whose generated file is not
// there yet.
func TestVetTool(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	t.Setenv("GOFLAGS", scratch.Flags())
	t.Setenv("GOWORK", "off")
	dir := t.TempDir()
	tool := filepath.Join(dir, "rategen-vet.exe")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, content := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26.0\n",
		"a.go":   "package m\n\ntype A interface {\n\t//ratelimit:key=#idd\n\tDo(id string) error\n}\n",
	} {
		scratch.Write(t, filepath.Join(dir, name), content)
	}
	for _, args := range [][]string{{"go", "vet", "-vettool=" + tool, "."}, {tool, "."}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if want := `a.go:4:18: key: method Do has no parameter #idd (did you mean "#id"?)`; err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	// Where the go command cannot list the packages, its own words say why.
	for path, content := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26.0\n\nrequire example.com/other v1.0.0\n\n" +
			"replace (\n\texample.com/other => ./other\n\texample.com/third => ./third\n)\n",
		"b.go":           "package m\n\nimport _ \"example.com/other\"\n",
		"other/go.mod":   "module example.com/other\n\ngo 1.26.0\n\nrequire example.com/third v1.0.0\n",
		"other/other.go": "package other\n\nimport _ \"example.com/third\"\n",
		"third/go.mod":   "module example.com/third\n\ngo 1.26.0\n",
		"third/third.go": "package third\n",
	} {
		scratch.Write(t, filepath.Join(dir, path), content)
	}
	for env, want := range map[string]string{"A=b": "updates to go.mod needed", "GOOS=windwos": "unsupported GOOS/GOARCH pair", "GOCACHE=off": "GOCACHE=off"} {
		cmd := exec.Command(tool, "./...")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), env)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s\nwant %q", env, err, out, want)
		}
	}
}
