package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/effort"
)

// checkout copies parts of this checkout, as change has them.
func checkout(t *testing.T, change func(path, text string) string, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join("../../..", name), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel("../../..", path)
			if err != nil {
				return err
			}
			target := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
				return err
			}
			return os.WriteFile(target, []byte(change(filepath.ToSlash(name), string(text))), 0o644)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The scenarios of the test have no tests of their own, which would have to be linked.
var (
	scenarios = []string{"testdata/algorithms.txtar", "testdata/shared.txtar", "testdata/elsewhere.txtar", "testdata/err_options.txtar"}
	runtime   = []string{"go.mod", "go.sum", "runtime", "lua"}
)

func unchanged(_, text string) string { return text }

// TestTry compiles code for runtimes that are older or newer in several ways.
func TestTry(t *testing.T) {
	if !effort.Full() {
		t.Skip("compiles a runtime: in a full run only")
	}
	const constant = "IsAtLeastVersion0_1_0"
	for name, c := range map[string]struct {
		generated, runtime func(path, text string) string
		want, err          string // runtime nil: that of this checkout
	}{
		"same": {unchanged, nil, "3 scenarios: 3 work, 0 are refused", ""},
		"older runtime": {func(path, text string) string {
			if path == "testdata/shared.txtar" {
				return strings.ReplaceAll(text, constant, "IsAtLeastVersion0_9_0")
			}
			return text
		}, nil, "3 scenarios: 2 work, 1 are refused", ""},
		"a promise not kept": {unchanged, func(path, text string) string {
			if path == "runtime/key.go" {
				return strings.ReplaceAll(text, ") AddString(", ") AddText(")
			}
			return text
		}, "", "does not work"},
		"code that does not say what it needs": {func(path, text string) string {
			return strings.ReplaceAll(text, "const _ = runtime."+constant, "var _ = runtime.Newer")
		}, nil, "", "undefined: runtime.Newer"},
		"no generated code": {func(path, text string) string {
			return strings.ReplaceAll(text, "-- want/", "-- ")
		}, nil, "", "no generated code"},
	} {
		t.Run(name, func(t *testing.T) {
			over := "../../.."
			if c.runtime != nil {
				over = checkout(t, c.runtime, runtime...)
			}
			got, err := try(t.TempDir(), checkout(t, c.generated, scenarios...), over)
			if c.err == "" && (err != nil || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%v, want an error with %q", err, c.err)
			}
		})
	}
}
