package load

import (
	"bytes"
	"fmt"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/internal/testkit/scratch"
)

// TestUnknownExports has the go command give export data of a kind, or of a version, that
// neither this program nor go/packages can read, as a newer Go than theirs does: all is
// read from source then, in packages with cgo too.
func TestUnknownExports(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":       "module example.com/m\n\ngo 1.26.0\n",
		"plain/a.go":   "package plain\n\nimport (\n\t\"context\"\n\t\"time\"\n)\n\ntype A interface {\n\t//ratelimit:key=#at.Unix()\n\tDo(ctx context.Context, at time.Time) error\n}\n",
		"withcgo/a.go": "package withcgo\n\nimport (\n\t\"C\"\n\t\"context\"\n\t\"time\"\n)\n\ntype A interface {\n\t//ratelimit:key=#at.Unix()\n\tDo(ctx context.Context, at time.Time) error\n}\n",
	} {
		scratch.Write(t, filepath.Join(dir, name), content)
	}
	known, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", "internal/goarch").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(string(bytes.TrimSpace(known)))
	if err != nil {
		t.Fatal(err)
	}
	unknown := map[string][]byte{"kind": []byte("go object of another kind\n")}
	// The version follows this, in four bytes.
	if head := []byte("$$B\nu"); bytes.Contains(data, head) {
		data[bytes.Index(data, head)+len(head)+1] = 0xff
		unknown["version"] = data
	}
	for name, data := range unknown {
		for _, pkg := range []string{"./plain", "./withcgo"} {
			if out, _ := exec.Command("go", "env", "CGO_ENABLED").Output(); pkg == "./withcgo" && (name == "version" || string(bytes.TrimSpace(out)) != "1") {
				continue
			}
			t.Run(fmt.Sprint(name, pkg), func(t *testing.T) {
				report := diag.NewReporter(token.NewFileSet(), dir)
				program := List(Config{Dir: dir, Patterns: []string{pkg}}, report)
				file := filepath.Join(t.TempDir(), "export")
				if err := os.WriteFile(file, data, 0o644); err != nil {
					t.Fatal(err)
				}
				for _, p := range program.list.pkgs {
					p.Export = file
				}
				program.Parse()
				if files := program.Check(); len(files) != 1 || report.HasErrors() {
					t.Error(len(files), report.Diagnostics())
				}
				if program.list.packagesReadExports() {
					t.Error("go/packages is said to read it")
				}
			})
		}
	}
}
