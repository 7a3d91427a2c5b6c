package emit

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
)

// A HiddenError says that the generated code needs a name of Go itself that its
// package declares otherwise.
type HiddenError struct {
	Object types.Object // that the package declares
}

func (e *HiddenError) Error() string {
	return fmt.Sprintf("package %s declares %s, and the generated code needs the %s that Go declares: rename it, or write the wrappers to another package with -out",
		e.Object.Pkg().Path(), e.Object.Name(), e.Object.Name())
}

// checkHidden returns an error if generated code uses names that mean something
// else in its package.
func (e *emitter) checkHidden(content []byte) error {
	scope := e.file.Home.Scope()
	var hidden []string
	for _, name := range predeclared {
		if scope.Lookup(name) != nil {
			hidden = append(hidden, name)
		}
	}
	if len(hidden) == 0 {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", content, 0)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(file.Unresolved, func(id *ast.Ident) bool { return slices.Contains(hidden, id.Name) }); i >= 0 {
		return &HiddenError{scope.Lookup(file.Unresolved[i].Name)}
	}
	return nil
}
