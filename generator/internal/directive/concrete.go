package directive

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
)

// A Concrete is a type with methods of its own, some with directives. Its
// interface is generated along with the wrapper.
type Concrete struct {
	Pkg, Name string
	names     map[string]bool // its own, and those of its aliases that receivers may have
	Spec      *ast.TypeSpec   // for its type parameters
	path      string          // of the file that declares it
	Methods   []string        // the exported ones, by file and place
	Files     map[string]bool // the paths of the files that declare them
}

// Owns reports whether a function is a method of the type.
func (c *Concrete) Owns(fn *ast.FuncDecl) bool { return c.names[ReceiverName(fn)] }

// A methodDirectives holds the directives above one method of a concrete type.
type methodDirectives struct {
	fn         *ast.FuncDecl
	directives []*Directive
}

// InterfaceName returns the name of the interface that is wrapped. That of a
// concrete type is generated.
func (decl *Decl) InterfaceName() string {
	if decl.Concrete != nil {
		return decl.Spec.Name.Name + "Interface"
	}
	return decl.Spec.Name.Name
}

// Generates returns the package-level names that are to be generated.
func (decl *Decl) Generates() []string {
	names := []string{decl.WrapperName(), decl.ConstructorName()}
	if decl.Concrete != nil {
		names = append(names, decl.InterfaceName())
	}
	return names
}

// A TypeID names a type of a package; two packages may share a directory.
type TypeID struct{ pkg, name string }

// AddLimitedTypes adds the types of whose methods a file limits some.
func AddLimitedTypes(file *ast.File, wanted map[TypeID]bool) {
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && ReceiverName(fn) != "" && HasDirective(fn.Doc) {
			wanted[TypeID{file.Name.Name, ReceiverName(fn)}] = true
		}
	}
}

// ConcreteTypes finds the declarations of types and of their methods. It
// returns the types by the file that declares them.
func ConcreteTypes(wanted map[TypeID]bool, files []*ast.File, paths []string) map[string][]*Concrete {
	found := map[TypeID]*Concrete{}
	origin := aliases(files)
	for id := range wanted {
		wanted[origin(id)] = true
	}
	tests := map[TypeID]bool{} // are declared in test files
	for i, file := range files {
		for _, spec := range typeSpecs(file) {
			tests[TypeID{file.Name.Name, spec.Name.Name}] = isTest(paths[i])
		}
	}
	at := func(id TypeID) *Concrete {
		if found[id] == nil {
			found[id] = &Concrete{Pkg: id.pkg, Name: id.name, names: map[string]bool{id.name: true}, Files: map[string]bool{}}
		}
		return found[id]
	}
	for i, file := range files {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.IsExported() {
				name := ReceiverName(fn)
				id := origin(TypeID{file.Name.Name, name})
				if wanted[id] && (tests[id] || !isTest(paths[i])) { // else the package lacks the method
					t := at(id)
					t.Methods, t.Files[paths[i]], t.names[name] = append(t.Methods, fn.Name.Name), true, true
				}
			}
		}
		for _, spec := range typeSpecs(file) {
			if id := (TypeID{file.Name.Name, spec.Name.Name}); wanted[id] && !spec.Assign.IsValid() {
				t := at(id)
				t.Spec, t.path = spec, paths[i]
			}
		}
	}
	declared := map[string][]*Concrete{}
	for _, t := range found {
		if t.Spec != nil && len(t.Methods) > 0 {
			declared[t.path] = append(declared[t.path], t)
		}
	}
	for _, types := range declared {
		slices.SortFunc(types, func(a, b *Concrete) int { return int(a.Spec.Pos() - b.Spec.Pos()) })
	}
	return declared
}

// aliases returns a function that follows aliases, of pointers too, to the type that they
// stand for.
func aliases(files []*ast.File) func(TypeID) TypeID {
	of := map[TypeID]string{}
	for _, file := range files {
		for _, spec := range typeSpecs(file) {
			if base := baseType(spec.Type); spec.Assign.IsValid() && base != nil {
				of[TypeID{file.Name.Name, spec.Name.Name}] = base.Name
			}
		}
	}
	return func(id TypeID) TypeID {
		for range len(of) { // more would be a cycle
			name, ok := of[id]
			if !ok {
				break
			}
			id.name = name
		}
		return id
	}
}

// baseType returns the name in T and in *T, or nil.
func baseType(t ast.Expr) *ast.Ident {
	t = ast.Unparen(t)
	if star, ok := t.(*ast.StarExpr); ok {
		t = ast.Unparen(star.X)
	}
	base, _ := t.(*ast.Ident)
	return base
}

func isTest(path string) bool { return strings.HasSuffix(path, "_test.go") }

// HasDirective reports whether a comment has directives.
func HasDirective(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, Prefix) })
}

func typeSpecs(file *ast.File) []*ast.TypeSpec {
	var specs []*ast.TypeSpec
	for _, decl := range file.Decls {
		if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.TYPE {
			for _, s := range gen.Specs {
				specs = append(specs, s.(*ast.TypeSpec))
			}
		}
	}
	return specs
}

// ReceiverName returns the name of the type that a function is a method of, or
// "".
func ReceiverName(fn *ast.FuncDecl) string {
	if base, _ := Receiver(fn); base != nil {
		return base.Name
	}
	return ""
}

// Receiver returns the name of a method's type and of its type parameters.
func Receiver(fn *ast.FuncDecl) (base *ast.Ident, params []*ast.Ident) {
	if fn.Recv == nil || len(fn.Recv.List) != 1 {
		return nil, nil
	}
	t := ast.Unparen(fn.Recv.List[0].Type)
	if star, ok := t.(*ast.StarExpr); ok {
		t = ast.Unparen(star.X)
	}
	var args []ast.Expr
	switch x := t.(type) {
	case *ast.IndexExpr:
		t, args = x.X, []ast.Expr{x.Index}
	case *ast.IndexListExpr:
		t, args = x.X, x.Indices
	}
	for _, a := range args {
		if id, ok := a.(*ast.Ident); ok {
			params = append(params, id)
		}
	}
	base, _ = t.(*ast.Ident)
	return base, params
}

// AddConcrete adds the concrete types that a file declares to those it has
// wrappers for.
func (src *File) AddConcrete(types []*Concrete, bare bool) {
	for _, t := range types {
		for _, spec := range typeSpecs(src.Syntax) {
			if spec.Name.Name == t.Name {
				src.Decls = append(src.Decls, &Decl{Spec: spec, Concrete: t, Bare: bare, Methods: map[string][]*Directive{}, Sources: map[string]*File{}})
			}
		}
	}
}

// LinkMethods gives the directives above methods to the types they are
// methods of, and then their names to the wrappers.
func LinkMethods(files []*File, report diag.Func) {
	for _, src := range files {
		for _, m := range src.Methods {
			name := ReceiverName(m.fn)
			decl := findConcreteDecl(files, src.Syntax.Name.Name, m.fn)
			switch {
			case !m.fn.Name.IsExported():
				report(m.directives[0].Pos, "method %s of %s is unexported, and the interface that is generated for %s has only exported ones: export it, or remove the directive", m.fn.Name.Name, name, name)
			case isTest(src.Path) && (decl == nil || !isTest(decl.Concrete.path)):
				report(m.directives[0].Pos, "a directive on a method that only the tests have, of %s, which no test file declares: a wrapper outside of them would lack it; move the method out of the test file, or declare the type in one", name)
			case decl == nil:
				report(m.directives[0].Pos, "a directive on a method of %s, which is not a type that this package defines: write the method's receiver with the type's own name", name)
			default:
				decl.Methods[m.fn.Name.Name], decl.Sources[m.fn.Name.Name] = m.directives, src
			}
		}
	}
	for _, src := range files {
		for _, decl := range src.Decls {
			decl.findTypeName(report)
		}
	}
}

func findConcreteDecl(files []*File, pkg string, fn *ast.FuncDecl) *Decl {
	for _, src := range files {
		for _, decl := range src.Decls {
			if decl.Concrete != nil && decl.Concrete.Pkg == pkg && decl.Concrete.Owns(fn) {
				return decl
			}
		}
	}
	return nil
}
