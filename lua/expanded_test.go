package lua

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the scripts in expanded")

// TestExpanded keeps the scripts in expanded as Redis runs them, so that an algorithm
// can be read in one file: alone decides one call with one limit, and batch any number
// of such calls.
func TestExpanded(t *testing.T) {
	t.Parallel()
	wanted := map[string]string{}
	for i, name := range Algorithms {
		wanted[name+"_alone.lua"] = Take(One | 1<<i)
		wanted[name+"_batch.lua"] = Take(1 << i)
	}
	if *update {
		if err := os.RemoveAll("expanded"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir("expanded", 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range wanted {
			if err := os.WriteFile(filepath.Join("expanded", name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := filepath.Glob("expanded/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, ok := wanted[filepath.Base(file)]; !ok {
			t.Errorf("%s is of no script: remove it", file)
		}
	}
	for name, want := range wanted {
		got, err := os.ReadFile(filepath.Join("expanded", name))
		if err != nil || string(got) != want {
			t.Errorf("expanded/%s is not what Redis runs (%v): run go test ./lua -update and read the difference", name, err)
		}
		if strings.Contains(want, insert) {
			t.Errorf("%s: a piece was not inserted", name)
		}
	}
}
