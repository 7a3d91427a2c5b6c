package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
)

// TestAPI compares the list with the code. Nested modules, which need
// dependencies of their own, are compared in a full run.
func TestAPI(t *testing.T) {
	if err := run("../../..", !effort.Full(), false); err != nil {
		t.Error(err)
	}
}

// Somebody who limits calls reads package runtime in ten minutes. A method for adapters belongs in
// package wrapper, one for operators behind internal/bridge. No exported declaration names a type
// that its users cannot.
func TestRuntimeIsSmall(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../api.txt")
	limittest.OK(t, err)
	symbols := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^runtime, (?:const|func|type|var) (\w+)`).FindAllSubmatch(text, -1) {
		symbols[string(m[1])] = true
	}
	methods := regexp.MustCompile(`(?m)^runtime, method \(\*Limiter\) `).FindAll(text, -1)
	if len(symbols) == 0 || len(symbols) > 90 || len(methods) == 0 || len(methods) > 18 {
		t.Errorf("package runtime has %d symbols, and a Limiter %d methods: 90 and 18 at most", len(symbols), len(methods))
	}
	for _, line := range regexp.MustCompile(`(?m)^.*,.*\binternal/.*`).FindAll(text, -1) {
		t.Errorf("%s names a type that its users cannot", line)
	}
}
