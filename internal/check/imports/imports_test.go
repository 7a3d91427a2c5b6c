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

// imports returns what each package that users build imports of the module. Paths are
// those within the module.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	all, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// listed asks the go command once for all tests.
var listed = sync.OnceValues(func() (map[string][]string, error) {
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./cmd/...", "./generator/...", "./lua/...", "./runtime/...", "./internal/bridge", "./internal/peerstate")
	cmd.Dir = "../../.."
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		paths := strings.Fields(line)
		from := strings.TrimPrefix(paths[0], module)
		all[from] = []string{}
		for _, path := range paths[1:] {
			if to, ok := strings.CutPrefix(path, module); ok {
				all[from] = append(all[from], to)
			}
		}
	}
	return all, nil
})

// TestOneWay wants imports to run one way.
func TestOneWay(t *testing.T) {
	t.Parallel()
	forbidden := []struct{ from, to string }{
		{"generator", "runtime"},
		{"generator", "lua"},
		{"runtime", "generator"},
		{"lua", "runtime"},
	}
	all := imports(t)
	if len(all["runtime"]) == 0 || len(all["generator"]) == 0 {
		t.Fatal("the packages were not found")
	}
	agreed := []string{"lua", "internal/algorithm", "internal/spec", "internal/peerstate", "internal/bridge", "runtime/rediswire", "runtime/rule", "runtime/observe"} // what the engine and others agree on
	for from, tos := range all {
		for _, to := range tos {
			for _, f := range forbidden {
				if within(from, f.from) && within(to, f.to) {
					t.Errorf("%s imports %s", from, to)
				}
			}
			if within(from, "runtime/internal") && !within(to, "runtime/internal") && !slices.Contains(agreed, to) && !within(from, "runtime/internal/storetest") && !within(from, "runtime/internal/documents") && !within(from, "runtime/internal/wiretest") {
				t.Errorf("%s imports %s: the engine knows nothing outside of it but %q", from, to, agreed)
			}
			if from == "runtime" && within(to, "runtime") && !within(to, "runtime/internal") && !slices.Contains(agreed, to) {
				t.Errorf("%s imports %s: all programs would link it", from, to)
			}
		}
	}
}

// TestLayers wants the packages that decide calls to import each other one way. Each may
// import those that stand behind it, and what has no place here.
func TestLayers(t *testing.T) {
	t.Parallel()
	layers := []string{"decide", "ledger", "redis", "memstate", "script", "plan", "recall", "terms"}
	all := imports(t)
	for i, layer := range layers {
		from := "runtime/internal/" + layer
		if len(all[from]) == 0 {
			t.Errorf("%s was not found, or imports nothing", from)
		}
		for _, before := range layers[:i] {
			if slices.Contains(all[from], "runtime/internal/"+before) {
				t.Errorf("%s imports %s", from, before)
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
	all, paths := imports(t), map[string]string{} // by the name of a box
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
		if slices.Contains([]string{"runtime/internal/storetest", "runtime/internal/documents", "runtime/internal/onminiredis", "runtime/internal/wiretest"}, path) { // suites
			continue
		}
		if (within(path, "runtime/internal") || within(path, "generator/internal")) && !shown[path] {
			t.Errorf("%s is not in the diagram", path)
		}
	}
}

// TestLinked wants a program that has go-redis to link one module more by importing the
// runtime: rategen itself.
func TestLinked(t *testing.T) {
	t.Parallel()
	modules := func(pattern string) string {
		cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", pattern)
		cmd.Dir = "../../.."
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		all := slices.DeleteFunc(strings.Fields(string(out)), func(path string) bool { return path+"/" == module })
		slices.Sort(all)
		return strings.Join(slices.Compact(all), " ")
	}
	if got, want := modules("./runtime"), modules("github.com/redis/go-redis/v9"); got != want {
		t.Errorf("runtime links %s, go-redis alone %s", got, want)
	}
}
