// Package imports checks that the packages of the module import each other one way, and
// that the diagram in ARCHITECTURE.md shows them as they are. It would find a runtime that links what
// only an adapter needs, and a stage of a call that reaches back to the one before it: no linter of
// Go's knows which way a module runs.
package imports

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/rategen/rategen/"

// list returns what the go command lists.
func list(args ...string) string {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = "../../.."
	out, err := cmd.Output()
	if err != nil {
		panic(err)
	}
	return string(out)
}

// imports returns what each package that users build imports of the module. Paths are
// those within the module.
var imports = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(list("-f", `{{.ImportPath}} {{join .Imports " "}}`,
		"./cmd/...", "./generator/...", "./lua/...", "./runtime/...", "./internal/bridge", "./internal/peerstate")) {
		paths := strings.Fields(line)
		from := strings.TrimPrefix(paths[0], module)
		all[from] = []string{}
		for _, path := range paths[1:] {
			if to, ok := strings.CutPrefix(path, module); ok {
				all[from] = append(all[from], to)
			}
		}
	}
	return all
})

// suites are packages of tests that others run.
var suites = []string{"runtime/internal/storetest", "runtime/internal/documents", "runtime/internal/onminiredis", "runtime/internal/wiretest"}

// TestOneWay wants imports to run one way. Of the layers that decide calls each may import those that
// stand behind it, and what has no place there.
func TestOneWay(t *testing.T) {
	t.Parallel()
	forbidden := []struct{ from, to string }{
		{"generator", "runtime"},
		{"generator", "lua"},
		{"runtime", "generator"},
		{"lua", "runtime"},
	}
	layers := []string{"decide", "ledger", "redis", "memstate", "script", "plan", "recall", "terms"}
	for i, layer := range layers {
		for _, before := range layers[:i] {
			forbidden = append(forbidden, struct{ from, to string }{"runtime/internal/" + layer, "runtime/internal/" + before})
		}
	}
	all := imports()
	for _, f := range forbidden {
		if len(all[f.from]) == 0 && f.from != "lua" {
			t.Errorf("%s was not found, or imports nothing", f.from)
		}
	}
	agreed := []string{"lua", "internal/algorithm", "internal/spec", "internal/peerstate", "internal/bridge", "runtime/rediswire", "runtime/rule", "runtime/observe"} // what the engine and others agree on
	for from, tos := range all {
		for _, to := range tos {
			for _, f := range forbidden {
				if within(from, f.from) && within(to, f.to) {
					t.Errorf("%s imports %s", from, to)
				}
			}
			if within(from, "runtime/internal") && !within(to, "runtime/internal") && !slices.Contains(agreed, to) && !slices.Contains(suites, from) {
				t.Errorf("%s imports %s: the engine knows nothing outside of it but %q", from, to, agreed)
			}
			if from == "runtime" && within(to, "runtime") && !within(to, "runtime/internal") && !slices.Contains(agreed, to) {
				t.Errorf("%s imports %s: all programs would link it", from, to)
			}
		}
	}
}

// within reports whether a package is in a directory or below it.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// TestDiagram wants the diagram to show every package of the engine and of the
// generator, and no arrow that is no import.
func TestDiagram(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	diagram := regexp.MustCompile("(?s)```mermaid\n(.*?)```").FindSubmatch(page)
	if diagram == nil {
		t.Fatal("ARCHITECTURE.md has no diagram")
	}
	all, paths := imports(), map[string]string{} // by the name of a box
	for _, box := range regexp.MustCompile(`(\w+)\["([^"]+)"\]`).FindAllStringSubmatch(string(diagram[1]), -1) {
		paths[box[1]] = box[2]
		if all[box[2]] == nil {
			t.Errorf("%s is no package", box[2])
		}
	}
	for _, arrow := range regexp.MustCompile(`(?m)^\s*(\w+(?: & \w+)*) --> (\w+(?: & \w+)*)$`).FindAllStringSubmatch(string(diagram[1]), -1) {
		for from := range strings.SplitSeq(arrow[1], " & ") {
			for to := range strings.SplitSeq(arrow[2], " & ") {
				if !slices.Contains(all[paths[from]], paths[to]) {
					t.Errorf("%s does not import %s", from, to)
				}
			}
		}
	}
	shown := map[string]bool{}
	for _, path := range paths {
		shown[path] = true
	}
	for path := range all {
		if !slices.Contains(suites, path) && (within(path, "runtime/internal") || within(path, "generator/internal")) && !shown[path] {
			t.Errorf("%s is not in the diagram", path)
		}
	}
}

// TestLinked wants a program that has go-redis to link one module more by importing the
// runtime: rategen itself.
func TestLinked(t *testing.T) {
	t.Parallel()
	modules := func(pattern string) string {
		all := slices.DeleteFunc(strings.Fields(list("-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", pattern)), func(path string) bool { return path+"/" == module })
		slices.Sort(all)
		return strings.Join(slices.Compact(all), " ")
	}
	if got, want := modules("./runtime"), modules("github.com/redis/go-redis/v9"); got != want {
		t.Errorf("runtime links %s, go-redis alone %s", got, want)
	}
}
