// Package differential compares the code that is generated for expressions with
// the same expressions in plain Go.
package differential

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/scratch"
	"github.com/rategen/rategen/internal/testkit/seed"
)

// methodsEach is how many methods a package has.
const methodsEach = 150

var expressions = flag.Int("expressions", effort.Choose(1_000, 101_000), "how many expressions are written at least; a few are refused")

// TestExpressions has wrappers generated whose options are random expressions over
// random types, in one program, and calls them with random values, many of them
// nil. Each expression must have the value and make the calls that it has and
// makes in plain Go. Where that finds a nil pointer or an index out of range, the
// key is invalid, or what is documented happens, and nothing panics. A panic of a
// function that the expression calls goes on.
//
// It tries the same ones each time, unless RATEGEN_SEED says where to begin.
func TestExpressions(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	first := seed.First()
	module := newModule(t)
	var pkgs []*pkg
	for tried := 0; tried < *expressions; {
		p := newPkg(len(pkgs), first, methodsEach)
		pkgs = append(pkgs, p)
		for _, m := range p.methods {
			tried += len(m.options)
		}
	}
	written := write(t, module, pkgs)
	tried := 0
	for _, p := range pkgs {
		for _, m := range p.methods {
			tried += len(m.options)
		}
	}
	if tried*10 < written*9 {
		t.Errorf("%d of %d expressions are refused: too few are tried", written-tried, written)
	}
	out, err := run(module, "go", "run", "-gcflags=example.com/x/...=-N -l", ".", fmt.Sprint(first), fmt.Sprint(effort.Choose(40, 60)))
	if err != nil {
		t.Fatalf("%v\n%s", err, cut(out))
	}
	t.Logf("%d expressions: %s", tried, strings.TrimSpace(out))
}

func cut(out string) string { return out[:min(len(out), 20_000)] }

// newModule returns the directory of a module with a stand-in for the runtime.
func newModule(t *testing.T) string {
	t.Helper()
	dir := scratch.Dir(t, "../..")
	scratch.Write(t, filepath.Join(dir, "go.mod"), "module example.com/x\n\ngo 1.26\n\nrequire github.com/rategen/rategen v0.0.0\n\nreplace github.com/rategen/rategen => ./rategen\n")
	scratch.Write(t, filepath.Join(dir, "rategen/go.mod"), "module github.com/rategen/rategen\n\ngo 1.26\n")
	for from, to := range map[string]string{"runtime/runtime.go": "rategen/runtime/runtime.go", "wrapper/wrapper.go": "rategen/runtime/wrapper/wrapper.go", "harness/harness.go": "harness/harness.go"} {
		content, err := os.ReadFile(filepath.Join("testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		scratch.Write(t, filepath.Join(dir, to), string(content))
	}
	return dir
}

// write writes the packages and has their wrappers generated. Expressions that the
// generator refuses are left out. It returns how many there were at first.
func write(t *testing.T, module string, pkgs []*pkg) int {
	t.Helper()
	imports, calls, written := "", "", 0
	for _, p := range pkgs {
		imports += fmt.Sprintf("\t%q\n", "example.com/x/"+p.name)
		calls += "\t" + p.name + ".Compare(&counts, seed, inputs, report)\n"
		for _, m := range p.methods {
			written += len(m.options)
		}
	}
	scratch.Write(t, filepath.Join(module, "main.go"), fmt.Sprintf(mainSource, imports, calls))
	for range 9 {
		starts := map[string][]int{}
		for _, p := range pkgs {
			text, lines := p.declarations()
			starts[p.name] = lines
			scratch.Write(t, filepath.Join(module, p.name, "i.go"), text)
			scratch.Write(t, filepath.Join(module, p.name, "support.go"), p.support())
		}
		_, err := generator.Run(generator.Config{Dir: module, Patterns: []string{"./p..."}})
		var wrong generator.Diagnostics
		if err == nil {
			return written
		}
		if !errors.As(err, &wrong) {
			t.Fatal(err)
		}
		drop(t, pkgs, starts, wrong)
	}
	t.Fatal("the generator refuses what it has not refused before")
	return 0
}

// drop removes the methods that diagnostics are about.
func drop(t *testing.T, pkgs []*pkg, starts map[string][]int, wrong generator.Diagnostics) {
	t.Helper()
	refused := map[string]map[int]bool{}
	for _, d := range wrong {
		name := filepath.Base(filepath.Dir(d.Pos.Filename))
		i, exact := slices.BinarySearch(starts[name], d.Pos.Line)
		if !exact {
			i--
		}
		if starts[name] == nil || i < 0 || strings.Contains(d.Message, "bug") {
			t.Fatal(d)
		}
		if refused[name] == nil {
			refused[name] = map[int]bool{}
		}
		refused[name][i] = true
		if testing.Verbose() && os.Getenv("RATEGEN_REFUSED") != "" {
			t.Log(d)
		}
	}
	for _, p := range pkgs {
		i := -1
		p.methods = slices.DeleteFunc(p.methods, func(method) bool { i++; return refused[p.name][i] })
	}
}

func run(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS="+scratch.Flags("-mod=mod"), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const mainSource = `package main

import (
	"fmt"
	"os"
	"strconv"

	"example.com/x/harness"
%s)

func main() {
	seed, _ := strconv.ParseUint(os.Args[1], 10, 64)
	inputs, _ := strconv.Atoi(os.Args[2])
	var counts harness.Counts
	differences := 0
	seen := map[string]bool{}
	report := func(text string) {
		if differences++; len(seen) < 20 && !seen[text] {
			seen[text] = true
			fmt.Println(text + "\n")
		}
	}
%s
	fmt.Printf("%%d values, %%d faults and %%d panics compared\n", counts.Values, counts.Faults, counts.Panics)
	if differences > 0 {
		fmt.Println(differences, "differences")
		os.Exit(1)
	}
}
`
