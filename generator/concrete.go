package generator

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A concreteType is a type with methods of its own, some with directives. Its
// interface is generated along with the wrapper.
type concreteType struct {
	pkg, name string
	spec      *ast.TypeSpec   // for its type parameters
	path      string          // of the file that declares it
	methods   []string        // the exported ones, by file and place
	files     map[string]bool // the paths of the files that declare them
}

// A methodDirectives is what stands above one method of a concrete type.
type methodDirectives struct {
	fn         *ast.FuncDecl
	directives []*directive
}

// interfaceName returns the name of the interface that is wrapped. That of a
// concrete type is generated.
func (decl *ifaceDecl) interfaceName() string {
	if decl.concrete != nil {
		return decl.spec.Name.Name + "Interface"
	}
	return decl.spec.Name.Name
}

// generates returns the package-level names that are to be generated.
func (decl *ifaceDecl) generates() []string {
	name := decl.spec.Name.Name
	names := []string{wrapperName(name), constructorName(name)}
	if decl.concrete != nil {
		names = append(names, decl.interfaceName())
	}
	return names
}

// findConcrete returns the types that have directives on their methods, by the
// file that declares them. The files with directives have these contents.
func (d *packageDir) findConcrete(contents map[string][]byte) map[string][]*concreteType {
	wanted := map[typeID]bool{}
	for path, content := range contents {
		file, err := parser.ParseFile(token.NewFileSet(), path, content, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil { // else reported later
			addLimitedTypes(file, wanted)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	var files []*ast.File
	var paths []string
	for _, name := range d.files {
		path := filepath.Join(d.dir, name)
		content, err := os.ReadFile(path)
		if err != nil || isOurs(content) {
			continue
		}
		if file, err := parser.ParseFile(token.NewFileSet(), path, content, parser.SkipObjectResolution); err == nil {
			files, paths = append(files, file), append(paths, path)
		}
	}
	return concreteTypes(wanted, files, paths)
}

// A typeID names a type of a package; two packages may share a directory.
type typeID struct{ pkg, name string }

// addLimitedTypes adds the types of whose methods a file limits some.
func addLimitedTypes(file *ast.File, wanted map[typeID]bool) {
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && receiverName(fn) != "" && hasDirective(fn.Doc) {
			wanted[typeID{file.Name.Name, receiverName(fn)}] = true
		}
	}
}

// concreteTypes finds the declarations of types and of their methods. It
// returns the types by the file that declares them.
func concreteTypes(wanted map[typeID]bool, files []*ast.File, paths []string) map[string][]*concreteType {
	found := map[typeID]*concreteType{}
	at := func(id typeID) *concreteType {
		if found[id] == nil {
			found[id] = &concreteType{pkg: id.pkg, name: id.name, files: map[string]bool{}}
		}
		return found[id]
	}
	for i, file := range files {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.IsExported() {
				if id := (typeID{file.Name.Name, receiverName(fn)}); wanted[id] {
					t := at(id)
					t.methods, t.files[paths[i]] = append(t.methods, fn.Name.Name), true
				}
			}
		}
		for _, spec := range typeSpecs(file) {
			if id := (typeID{file.Name.Name, spec.Name.Name}); wanted[id] && !spec.Assign.IsValid() {
				t := at(id)
				t.spec, t.path = spec, paths[i]
			}
		}
	}
	declared := map[string][]*concreteType{}
	for _, t := range found {
		if t.spec != nil && len(t.methods) > 0 {
			declared[t.path] = append(declared[t.path], t)
		}
	}
	for _, types := range declared {
		slices.SortFunc(types, func(a, b *concreteType) int { return int(a.spec.Pos() - b.spec.Pos()) })
	}
	return declared
}

func hasDirective(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, directivePrefix) })
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

// receiverName returns the name of the type that a function is a method of, or
// "".
func receiverName(fn *ast.FuncDecl) string {
	if base, _ := receiver(fn); base != nil {
		return base.Name
	}
	return ""
}

// receiver returns the name of a method's type and of its type parameters.
func receiver(fn *ast.FuncDecl) (base *ast.Ident, params []*ast.Ident) {
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

// addConcrete adds the concrete types that a file declares to those it has
// wrappers for.
func (src *sourceFile) addConcrete(types []*concreteType, bare bool) {
	for _, t := range types {
		for _, spec := range typeSpecs(src.ast) {
			if spec.Name.Name == t.name {
				src.ifaces = append(src.ifaces, &ifaceDecl{spec: spec, concrete: t, bare: bare, methods: map[string][]*directive{}, sources: map[string]*sourceFile{}})
			}
		}
	}
}

// linkMethods gives the directives above methods to the types they are
// methods of.
func (r *run) linkMethods(files []*sourceFile) {
	for _, src := range files {
		for _, m := range src.methods {
			name := receiverName(m.fn)
			decl := findConcreteDecl(files, src.ast.Name.Name, name)
			switch {
			case !m.fn.Name.IsExported():
				r.at(m.directives[0].pos, "method %s of %s is unexported, and the interface that is generated for %s has only exported ones: export it, or remove the directive", m.fn.Name.Name, name, name)
			case decl == nil:
				r.at(m.directives[0].pos, "a directive on a method of %s, which is not a type that this package defines: write the method's receiver with the type's own name", name)
			default:
				decl.methods[m.fn.Name.Name], decl.sources[m.fn.Name.Name] = m.directives, src
			}
		}
	}
}

func findConcreteDecl(files []*sourceFile, pkg, name string) *ifaceDecl {
	for _, src := range files {
		for _, decl := range src.ifaces {
			if decl.concrete != nil && decl.concrete.pkg == pkg && decl.concrete.name == name {
				return decl
			}
		}
	}
	return nil
}

// readFilesOf adds the contents of the files that declare the types and their
// methods.
func (d *packageDir) readFilesOf(types map[string][]*concreteType, contents map[string][]byte) {
	for path, declared := range types {
		for _, t := range declared {
			for path := range t.files {
				d.readInto(contents, path)
			}
		}
		d.readInto(contents, path)
	}
}

func (d *packageDir) readInto(contents map[string][]byte, path string) {
	if contents[path] == nil {
		contents[path], _ = os.ReadFile(path) // it was read a moment ago
	}
}

// methodsOf returns the interface of a concrete type's exported methods.
func methodsOf(t *types.Named) *types.Interface {
	var methods []*types.Func
	for m := range t.Methods() {
		if sig := m.Signature(); m.Exported() {
			sig = types.NewSignatureType(nil, nil, nil, sig.Params(), sig.Results(), sig.Variadic())
			methods = append(methods, types.NewFunc(m.Pos(), m.Pkg(), m.Name(), sig))
		}
	}
	return types.NewInterfaceType(methods, nil).Complete()
}
