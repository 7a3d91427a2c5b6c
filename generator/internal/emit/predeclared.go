package emit

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"

	"github.com/rategen/rategen/generator/internal/model"
)

// A HiddenError says that the generated code needs a name of Go itself that means
// something else in its package.
type HiddenError struct {
	Pos  token.Pos // of what hides it, if that is known
	text string
}

func (e *HiddenError) Error() string { return e.text }

// checkHidden returns an error if generated code uses names that mean something
// else in its package.
func (e *emitter) checkHidden(content []byte) error {
	for _, w := range e.file.Wrappers {
		for p := range w.TypeParams.TypeParams() {
			if name := p.Obj().Name(); slices.Contains(predeclared, name) {
				return &HiddenError{p.Obj().Pos(), fmt.Sprintf("type parameter %s of %s hides the %s that Go declares, and the generated code needs that: rename it", name, w.Name, name)}
			}
		}
	}
	hidden := slices.DeleteFunc(slices.Clone(predeclared), func(name string) bool { return !e.file.Declares(name) })
	if len(hidden) == 0 {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", content, 0)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(file.Unresolved, func(id *ast.Ident) bool { return slices.Contains(hidden, id.Name) }); i >= 0 {
		return hiddenByPackage(e.file, file.Unresolved[i].Name)
	}
	return nil
}

// hiddenByPackage returns the error about a name that the package declares.
func hiddenByPackage(f *model.File, name string) *HiddenError {
	remedy := ", or write the wrappers to another package with -out"
	if f.Out != nil {
		remedy = ""
	}
	return &HiddenError{f.PosOf(name), fmt.Sprintf("package %s declares %s, and the generated code needs the %s that Go declares: rename it%s", f.Home.Path(), name, name, remedy)}
}
