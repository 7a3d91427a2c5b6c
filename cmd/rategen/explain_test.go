package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// TestExplain runs every testdata/explain/*.txtar: a section whose name begins with
// "explain" holds what rategen prints for that command line, and how it ends if that is
// not 0. The other sections are files of a module.
func TestExplain(t *testing.T) {
	t.Parallel()
	scenarios, err := filepath.Glob("../../testdata/explain/*.txtar")
	if err != nil || len(scenarios) < 3 {
		t.Fatal("no scenarios", err)
	}
	for _, path := range scenarios {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{"go.mod": module["go.mod"]}
			for _, f := range archive.Files {
				if !strings.HasPrefix(f.Name, "explain ") {
					files[f.Name] = string(f.Data)
				}
			}
			dir := writeModule(t, files)
			for i, f := range archive.Files {
				if !strings.HasPrefix(f.Name, "explain ") {
					continue
				}
				code, out, errs := rategen(dir, strings.Fields(f.Name)...)
				got := strings.ReplaceAll(out+errs, dir+string(filepath.Separator), "")
				if code != 0 {
					got += fmt.Sprintf("exit %d\n", code)
				}
				archive.Files[i].Data = []byte(got)
				if diff := cmp.Diff(string(f.Data), got); diff != "" && !*update {
					t.Errorf("%s (-want +got):\n%s", f.Name, diff)
				}
			}
			if *update {
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
