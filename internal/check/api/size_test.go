package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Somebody who limits calls reads package runtime in ten minutes. A method for adapters belongs in
// package wrapper, one for operators behind internal/bridge.
func TestRuntimeIsSmall(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../api/runtime.txt")
	if err != nil {
		t.Fatal(err)
	}
	symbols := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(?:const|func|type|var) (\w+)`).FindAllSubmatch(text, -1) {
		symbols[string(m[1])] = true
	}
	methods := regexp.MustCompile(`(?m)^method \(\*Limiter\) `).FindAll(text, -1)
	if len(symbols) == 0 || len(symbols) > 90 || len(methods) == 0 || len(methods) > 18 {
		t.Errorf("package runtime has %d symbols, and a Limiter %d methods: 90 and 18 at most", len(symbols), len(methods))
	}
}

// No exported declaration names a type that its users cannot.
func TestNoInternalTypes(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../../api/*.txt")
	if err != nil || len(paths) < 30 {
		t.Fatal(paths, err)
	}
	hidden := regexp.MustCompile(`(?m)^.*rategen/internal/.*|^.*/runtime/internal/.*`)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range hidden.FindAll(text, -1) {
			t.Errorf("%s: %s names a type that its users cannot", path, line)
		}
	}
}
