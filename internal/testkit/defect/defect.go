// Package defect puts defects back into the code, to see that a random test finds them.
package defect

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An Edit of a source file puts a defect back.
type Edit struct {
	Name     string
	File     string   // its path from the directory of the test
	Old, New string   // Old stands in the file once
	Finds    []string // what finds it
}

// Read reads edits from a document, one a line: their fields with " | " in between, in which ⏎ is the end of a line.
// Their files are in a directory.
func Read(t *testing.T, document, dir string) (all []Edit) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line == "\n" || strings.HasPrefix(line, "#") {
			continue
		}
		field := strings.Split(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "⏎", "\n"), " | ")
		if len(field) < 4 {
			t.Fatalf("no edit is %q", line)
		}
		all = append(all, Edit{field[0], filepath.Join(dir, field[1]), field[2], field[3], field[4:]})
	}
	return all
}

// Source returns the file with the edit. The test fails if it does not fit the file.
func (e Edit) Source(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(e.File)
	if err != nil || strings.Count(string(source), e.Old) != 1 {
		t.Fatalf("%s does not hold %q once: %v", e.File, e.Old, err)
	}
	return strings.Replace(string(source), e.Old, e.New, 1)
}

// Compile returns the binary of the tests of the calling package, with the defect.
func (e Edit) Compile(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(e.File)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed, overlay, binary := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "defect.test")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{changed: e.Source(t), overlay: string(text)} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-c", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	return binary
}
