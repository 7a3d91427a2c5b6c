package diag_test

import (
	"go/token"
	"strings"
	"testing"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/parallel"
)

// A panic, in this goroutine or in one of a loop, is an error with a place, and
// says what to do.
func TestGuard(t *testing.T) {
	fset := token.NewFileSet()
	file := fset.AddFile("/dir/a.go", -1, 100)
	file.SetLines([]int{0, 10, 20})
	var nothing map[string][]int
	for name, do := range map[string]func(){
		"here":  func() { _ = nothing["x"][1] },
		"there": func() { parallel.Do(5, func(i int) { _ = nothing["x"][1] }) },
	} {
		r := diag.NewReporter(fset, "/dir")
		r.Guard(file.Pos(25), do)
		func() {
			defer r.Recover(token.Position{Filename: "/dir/sub"}, func() {})
			do()
		}()
		ds := r.Diagnostics()
		if len(ds) != 2 || !r.HasErrors() {
			t.Fatalf("%s: %v", name, ds)
		}
		for i, place := range []string{"a.go:3:6", "sub"} {
			m := ds[i].Message
			if got := ds[i].Pos.String(); got != place || !strings.Contains(m, "out of range") || !strings.Contains(m, "in diag_test.TestGuard.func") || !strings.Contains(m, "please report it") {
				t.Errorf("%s: %s: %s", name, got, m)
			}
		}
	}
}
