package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/effort"
)

// TestAdded wants importing runtime to add nothing to a program that has go-redis but
// rategen itself and, to its go.sum alone, what runtime's tests import.
func TestAdded(t *testing.T) {
	if !effort.Full() {
		t.Skip("links programs: in a full run only")
	}
	checkout, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	without, err := measure(checkout, false)
	if err != nil {
		t.Fatal(err)
	}
	with, err := measure(checkout, true)
	if err != nil {
		t.Fatal(err)
	}
	const own = "github.com/rategen/rategen"
	for _, c := range []struct {
		name string
		got  []string
		want []string
	}{
		{"go.mod", added(without.required, with.required), []string{own}},
		{"linked", added(without.linked, with.linked), []string{own}},
		{"go.sum", added(without.summed, with.summed), []string{"github.com/google/go-cmp", "go.uber.org/goleak", "go.yaml.in/yaml/v4", "pgregory.net/rapid"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: modules added (-want +got):\n%s", c.name, diff)
		}
	}
	if more := with.stripped - without.stripped; more < 100_000 || more > 1_500_000 {
		t.Errorf("the stripped binary has %d bytes more", more)
	}
}

// TestGot wants bench/results/footprint.md to tell what go get changes.
func TestGot(t *testing.T) {
	if !effort.Full() {
		t.Skip("gets modules: in a full run only")
	}
	checkout, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	want, err := got(checkout)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../bench/results/footprint.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := section(string(page), "got")
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("run go run ./internal/check/footprint -write (-want +got):\n%s", diff)
	}
}

// TestModulesIn reads the forms in which go.mod and go.sum name modules.
func TestModulesIn(t *testing.T) {
	const text = `module example.com/footprint

go 1.26.0

replace github.com/a/a => ../a

require github.com/b/b v1.2.3

require (
	github.com/c/c/v2 v2.0.0 // indirect
)
github.com/d/d v0.0.0-20260101000000-abcdefabcdef h1:x=
github.com/d/d v0.0.0-20260101000000-abcdefabcdef/go.mod h1:y=
example.com/footprint v
`
	want := []string{"github.com/b/b", "github.com/c/c/v2", "github.com/d/d"}
	if diff := cmp.Diff(want, modulesIn(strings.Split(text, "\n"))); diff != "" {
		t.Error(diff)
	}
}
