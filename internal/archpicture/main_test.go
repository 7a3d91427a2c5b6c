package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The picture shows the packages as they are.
func TestUpToDate(t *testing.T) {
	want, err := draw("../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/architecture.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/architecture.svg is not up to date: run go run ./internal/archpicture -write docs/architecture.svg")
	}
}

// Imports run one way, as ARCHITECTURE.md says.
func TestImports(t *testing.T) {
	packages, err := list("../..")
	if err != nil {
		t.Fatal(err)
	}
	forbidden := []struct{ from, to string }{
		{"generator", "runtime"},
		{"generator", "lua"},
		{"runtime", "generator"},
		{"lua", "runtime"},
	}
	for _, p := range packages {
		for _, q := range p.imports {
			for _, f := range forbidden {
				if within(p, f.from) && within(q, f.to) {
					t.Errorf("%s imports %s", p.path, q.path)
				}
			}
			if within(p, "runtime/internal") && !within(q, "runtime/internal") && q.path != "lua" {
				t.Errorf("%s imports %s: the engine knows nothing outside of it", p.path, q.path)
			}
			if p.path == "runtime" && within(q, "runtime") && !within(q, "runtime/internal") {
				t.Errorf("%s imports %s: all programs would link it", p.path, q.path)
			}
		}
	}
}

// within reports whether a package is in a directory or below it.
func within(p *pkg, dir string) bool {
	return p.path == dir || strings.HasPrefix(p.path, dir+"/")
}
