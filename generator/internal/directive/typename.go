package directive

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/naming"
)

// WrapperName returns the name of the wrapper.
func (decl *Decl) WrapperName() string {
	if decl.TypeName != "" {
		return decl.TypeName
	}
	return naming.Wrapper(decl.Spec.Name.Name)
}

// ConstructorName returns the name of the function that makes a wrapper.
func (decl *Decl) ConstructorName() string { return naming.Constructor(decl.WrapperName()) }

// RenameHint says how else to avoid a clash of a name that is generated.
func (decl *Decl) RenameHint(name string) string {
	if name == decl.InterfaceName() {
		return ""
	}
	return ", or name the wrapper of " + decl.Spec.Name.Name + " with type="
}

// Claim adds the names that are generated for the declaration to those of its package.
// It reports those that are taken, and returns whether none is.
func (decl *Decl) Claim(names map[string]bool, report diag.Func) (free bool) {
	free = true
	for _, name := range decl.Generates() {
		if names[name] {
			decl.reportTaken(name, report)
			free = false
		}
		names[name] = true
	}
	return free
}

// reportTaken reports a name that is to be generated and that the package has
// already.
func (decl *Decl) reportTaken(name string, report diag.Func) {
	report(decl.Spec.Name.Pos(), "the package declares %s already, which is to be generated for %s: rename one of them%s", name, decl.Spec.Name.Name, decl.RenameHint(name))
}

// findTypeName finds the name that directives give to the wrapper. All that give
// one must give the same.
func (decl *Decl) findTypeName(report diag.Func) {
	all := slices.Clone(decl.Own)
	for _, ds := range decl.Methods {
		all = append(all, ds...)
	}
	slices.SortFunc(all, func(a, b *Directive) int { return int(a.Pos - b.Pos) })
	for _, d := range all {
		if d.Settings == nil {
			continue
		}
		name := get[string](d.Settings, "type")
		if name == "" {
			continue
		}
		if decl.TypeName == "" {
			decl.TypeName = name
		} else if name != decl.TypeName {
			report(d.Settings.Place("type"), "type: another directive calls the wrapper of %s %s: remove one", decl.Spec.Name.Name, decl.TypeName).Mark(name)
		}
	}
}

// parseTypeName accepts a name that a package can give to a type.
func parseTypeName(text string) (string, error) {
	if !token.IsIdentifier(text) || text == "_" || text == "init" || text == "main" || types.Universe.Lookup(text) != nil {
		return "", fmt.Errorf("%q cannot be the name of a type: write a Go identifier such as LimitedStore", text)
	}
	return text, nil
}
