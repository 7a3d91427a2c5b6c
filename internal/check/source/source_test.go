// Package source checks how the Go files of all modules are written, where no linter does.
package source

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unasked returns the positions of the ifs and switches of a file whose header does what their
// condition does not ask: that is a statement of its own.
func unasked(files *token.FileSet, f *ast.File) (lines []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if n.Init != nil && !asks(n.Cond, n.Init) {
				lines = append(lines, files.Position(n.Pos()).String())
			}
		case *ast.SwitchStmt:
			if n.Init != nil && (n.Tag == nil || !asks(n.Tag, n.Init)) {
				lines = append(lines, files.Position(n.Pos()).String())
			}
		}
		return true
	})
	return lines
}

// asks tells whether a condition asks something to which a statement assigns.
func asks(condition ast.Expr, s ast.Stmt) (found bool) {
	var assigned []ast.Expr
	switch s := s.(type) {
	case *ast.AssignStmt:
		assigned = s.Lhs
	case *ast.IncDecStmt:
		assigned = []ast.Expr{s.X}
	}
	ast.Inspect(condition, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		found = found || ok && slices.ContainsFunc(assigned, func(a ast.Expr) bool { return types.ExprString(a) == types.ExprString(e) })
		return !found
	})
	return found
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	const example = `package p
func f() {
	if x, ok := g(); ok { h(x) }
	if s.n++; s.n > 1 { h() }
	switch x := g(); x { }
	if x := g(); ok { h(x) }
	if s.x = g(); s.ok { h() }
	if g(); ok { h() }
	switch x := g(); { case x > 1: }
	if ok { } else if x := g(); !ok { h(x) }
}`
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "p.go", example, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"p.go:6:2", "p.go:7:2", "p.go:8:2", "p.go:9:2", "p.go:10:17"}
	if diff := cmp.Diff(want, unasked(files, f)); diff != "" {
		t.Errorf("of the example (-want +got):\n%s", diff)
	}
	n := 0
	err = filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == ".git" {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.Contains(path, "/testdata/") {
			return err
		}
		n++
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, line := range unasked(files, f) {
			t.Errorf("%s: the header does what the condition does not ask: write it as a statement before", line)
		}
		return nil
	})
	if err != nil || n < 1000 {
		t.Errorf("%d files, %v", n, err)
	}
}

// sleeps is how many waits by time.Sleep there are in files of tests that know no bubble. A busy
// machine has failed tests by such waits: lower the number when one goes, and raise it for none.
const sleeps = 55

var (
	sleep  = regexp.MustCompile(`\btime\.Sleep\(`)
	bubble = regexp.MustCompile(`synctest|\bbubble\(|\beachCase\(`)
)

func TestSleeps(t *testing.T) {
	t.Parallel()
	n := 0
	err := filepath.WalkDir("../../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if !bubble.Match(text) {
			n += len(sleep.FindAll(text, -1))
		}
		return err
	})
	if err != nil || n > sleeps {
		t.Errorf("%d waits by time.Sleep outside of bubbles, more than %d: use testing/synctest, a store's clock, or wait for what happens; %v", n, sleeps, err)
	}
}
