package load

import (
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/internal/testkit/scratch"
)

// TestReadOnce checks a package whose dependencies must be read from source,
// with the runtime out of reach: each file is parsed once, and no syntax is kept
// of what has been checked. A program of thousands of files needs no more memory
// before the runtime is there than after.
func TestReadOnce(t *testing.T) {
	const deps = 3 * readAhead
	dir := t.TempDir()
	write := func(name, content string) {
		scratch.Write(t, filepath.Join(dir, name), content)
	}
	write("go.mod", "module example.com/m\n\ngo 1.26.0\n")
	var imports, uses strings.Builder
	for i := range deps {
		source := fmt.Sprintf("package d%d\n\ntype T int\n", i)
		if i > 1 {
			source = fmt.Sprintf("package d%d\n\nimport (\n\ta %q\n\tb %q\n)\n\ntype T struct {\n\ta a.T\n\tb b.T\n}\n",
				i, fmt.Sprintf("example.com/m/d%d", i-1), fmt.Sprintf("example.com/m/d%d", i/2))
		}
		write(fmt.Sprintf("d%d/d.go", i), source)
		fmt.Fprintf(&imports, "\t\"example.com/m/d%d\"\n", i)
		fmt.Fprintf(&uses, "\tD%d(d%d.T) error\n", i, i)
	}
	write("other/other.go", "package other\n\ntype Other interface {\n\t//ratelimit:max=1\n\tDo() error\n}\n")
	write("a/a.go", "package a\n\nimport (\n\t\"example.com/m/other\"\n\t\"github.com/rategen/rategen/runtime\"\n"+imports.String()+
		")\n\ntype A interface {\n\t//ratelimit:max=1\n\tDo() error\n"+uses.String()+"}\n\nvar _ *runtime.Limiter\n\nvar _ other.Other\n")

	fset := token.NewFileSet()
	report := diag.NewReporter(fset, dir)
	program := List(Config{Dir: dir, Patterns: []string{"./a"}}, report)
	program.Parse()
	files := program.Check()
	if len(files) != 1 || report.HasErrors() {
		t.Fatal(len(files), report.Diagnostics())
	}
	parsed := map[string]int{}
	fset.Iterate(func(f *token.File) bool {
		parsed[filepath.Base(filepath.Dir(f.Name()))]++
		return true
	})
	for i := range deps {
		if name := fmt.Sprint("d", i); parsed[name] != 1 {
			t.Errorf("%s is parsed %d times", name, parsed[name])
		}
	}
	if parsed["other"] != 1 {
		t.Errorf("a package with directives that is not in this run is parsed %d times", parsed["other"])
	}
}

// TestReadAhead takes packages one after the other: the reader keeps few of
// them in memory before they are taken, and none after.
func TestReadAhead(t *testing.T) {
	const n = 5 * readAhead
	dir := t.TempDir()
	list := &goList{pkgs: map[string]*listed{}}
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("p%d", i))
		name := fmt.Sprintf("p%d.go", i)
		if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, "package p%d\n", i), 0o644); err != nil {
			t.Fatal(err)
		}
		list.pkgs[all[i]] = &listed{ImportPath: all[i], Name: all[i], Dir: dir, GoFiles: []string{name}}
	}
	r := newReader(token.NewFileSet(), list, func(string) bool { return false })
	for i, path := range all {
		r.prefetch(all)
		r.mu.Lock()
		kept := len(r.begun)
		r.mu.Unlock()
		if kept > readAhead {
			t.Fatalf("%d packages are kept, at most %d may be", kept, readAhead)
		}
		if files := r.take(path).files; len(files) != 1 || files[0].Name.Name != path {
			t.Fatal(i, files)
		}
	}
	if len(r.begun) != 0 {
		t.Errorf("%d packages are kept after all were taken", len(r.begun))
	}
	if again := r.take(all[0]); len(again.files) != 1 {
		t.Error("a package cannot be taken again")
	}
}
