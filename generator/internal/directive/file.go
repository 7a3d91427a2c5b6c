package directive

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
)

// A File is a file that has directives or something like them.
type File struct {
	Path     string // absolute
	PkgPath  string // of its package, if it has policies
	Syntax   *ast.File
	Imports  []*Import
	Policies []*Policy
	Defaults []*Policy // without a name; one, or some that are reported
	Decls    []*Decl
	Methods  []*methodDirectives // above methods of concrete types
}

// A Decl is an interface declaration with directives on it or on its
// methods, or a concrete type with directives on its methods.
type Decl struct {
	Spec     *ast.TypeSpec
	Own      []*Directive            // on the interface itself
	Methods  map[string][]*Directive // on its methods, by name
	Concrete *Concrete               // nil for an interface
	Bare     bool                    // of a concrete type: no stub declares its interface
	Sources  map[string]*File        // of a concrete type: where the methods with directives stand
	TypeName string                  // of the wrapper, if a directive gives it one
}

// HasImport reports whether a file imports a package, by its code or by a
// directive.
func (src *File) HasImport(path string) bool {
	return slices.ContainsFunc(src.Imports, func(i *Import) bool { return i.Path == path }) ||
		slices.ContainsFunc(src.Syntax.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(path) })
}

// An owner is a declaration whose doc comment may hold directives.
type owner struct {
	spec   *ast.TypeSpec
	method string        // "" for the interface itself
	fn     *ast.FuncDecl // instead of these, a method of a concrete type
}

// Read attaches a parsed file's directives to the interfaces and
// methods they belong to.
func Read(fset *token.FileSet, file *ast.File, path string, report diag.Func) *File {
	src := &File{Path: path, Syntax: file}
	owners, places := owners(file)
	byName := map[*ast.TypeSpec]*Decl{}
	for _, group := range file.Comments {
		if HasDirective(group) {
			reportLoose(group, report)
		}
		for _, c := range group.List {
			o, ok := owners[group]
			d := src.directive(c, group == file.Doc, ok, report)
			if d == nil || d.imports != nil {
				continue
			}
			if d.policy || d.defaults {
				if !outside(group, places) {
					report(c.Pos(), "a policy and the defaults belong to the package: write the line outside of declarations").Mark(Prefix)
				} else if d.defaults {
					src.addDefaults(d, report)
				} else {
					src.addPolicy(d, report)
				}
				continue
			}
			if !ok {
				report(c.Pos(), "%s", misplaced(fset, group, places))
				continue
			}
			if o.fn != nil {
				src.addMethod(o.fn, d)
				if !d.Off {
					d.Settings = newSettings(d, onMethod, report)
				}
				continue
			}
			decl := byName[o.spec]
			if o.spec.Name.Name == "_" {
				report(o.spec.Name.Pos(), "type _ cannot be wrapped: give it a name")
				continue
			}
			if decl == nil {
				decl = &Decl{Spec: o.spec, Methods: map[string][]*Directive{}}
				byName[o.spec] = decl
				src.Decls = append(src.Decls, decl)
			}
			if o.method == "" {
				decl.Own = append(decl.Own, d)
			} else {
				decl.Methods[o.method] = append(decl.Methods[o.method], d)
			}
			if !d.Off {
				where := onMethod
				if o.method == "" {
					where = onInterface
				}
				d.Settings = newSettings(d, where, report)
			}
		}
	}
	return src
}

// reportLoose reports comment lines beside a directive that have options and nothing else.
func reportLoose(group *ast.CommentGroup, report diag.Func) {
	for _, c := range group.List {
		if text, ok := strings.CutPrefix(c.Text, "//"); ok && areKnown(text) {
			report(c.Pos(), "these options belong to no directive: a directive is one line, write them on the line with %s", Prefix).Mark(c.Text)
		}
	}
}

// addMethod adds a directive above a method of a concrete type.
func (src *File) addMethod(fn *ast.FuncDecl, d *Directive) {
	n := len(src.Methods)
	if n == 0 || src.Methods[n-1].fn != fn {
		src.Methods = append(src.Methods, &methodDirectives{fn: fn})
		n++
	}
	src.Methods[n-1].directives = append(src.Methods[n-1].directives, d)
}

// directive returns the directive in a comment, or nil. It reports what was
// meant as one and is none. A package's documentation may speak of directives,
// and so may code that is quoted in a block comment outside of an interface.
//
// A line is not made a directive where none has a meaning, or to be a broken one.
func (src *File) directive(c *ast.Comment, packageDoc, owned bool, report diag.Func) *Directive {
	if strings.HasPrefix(c.Text, Prefix) {
		d := parse(c.Text, c.Pos(), report)
		if d != nil && d.imports != nil {
			src.Imports = append(src.Imports, d.imports)
		}
		return d
	}
	if packageDoc {
		return nil
	}
	if text, ok := strings.CutPrefix(c.Text, "//"); ok {
		options := findNearMiss(text)
		if options == "" && owned {
			options = findAtEnd(text)
		}
		if options != "" {
			d := report(c.Pos(), "this comment is not a directive and limits nothing: write %s%s", Prefix, options).Mark(c.Text)
			if owned && isSound(options) {
				d.Replace(c.Pos(), len(c.Text), Prefix+options, "make it a directive")
			}
		}
		return nil
	}
	offset := 0
	for line := range strings.Lines(c.Text) {
		text := strings.TrimLeft(line, "/* \t")
		quoted := strings.HasSuffix(line[:len(line)-len(text)], "//") && !src.inInterface(c)
		if options := findNearMiss(strings.TrimRight(text, "*/ \t\r\n")); options != "" && !quoted {
			report(c.Pos()+token.Pos(offset+len(line)-len(text)), "a directive in a block comment limits nothing: write it as a line of its own, %s%s", Prefix, options).Mark(text)
		}
		offset += len(line)
	}
	return nil
}

func (src *File) inInterface(c *ast.Comment) bool {
	found := false
	ast.Inspect(src.Syntax, func(n ast.Node) bool {
		t, ok := n.(*ast.InterfaceType)
		found = found || ok && t.Pos() < c.Pos() && c.End() < t.End()
		return !found
	})
	return found
}

// owners returns the doc comments in which directives have a meaning, and the
// declarations that surround or own all other comments.
func owners(file *ast.File) (map[*ast.CommentGroup]owner, []ast.Node) {
	owned := map[*ast.CommentGroup]owner{}
	var places []ast.Node
	for _, decl := range file.Decls {
		places = append(places, decl)
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Doc != nil && ReceiverName(fn) != "" {
			owned[fn.Doc] = owner{fn: fn}
		}
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, s := range gen.Specs {
			spec := s.(*ast.TypeSpec)
			doc := spec.Doc
			if doc == nil && !gen.Lparen.IsValid() {
				doc = gen.Doc
			}
			iface, isIface := spec.Type.(*ast.InterfaceType)
			if doc != nil && (isIface || isNamed(spec.Type)) {
				owned[doc] = owner{spec: spec}
			}
			if !isIface {
				continue
			}
			for _, f := range iface.Methods.List {
				if _, isFunc := f.Type.(*ast.FuncType); isFunc && f.Doc != nil && len(f.Names) == 1 {
					owned[f.Doc] = owner{spec: spec, method: f.Names[0].Name}
				}
			}
		}
	}
	return owned, places
}

// isNamed reports whether a type expression is the name of a type, which may
// be an interface's.
func isNamed(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident, *ast.SelectorExpr:
		return true
	case *ast.IndexExpr:
		return isNamed(e.X)
	case *ast.IndexListExpr:
		return isNamed(e.X)
	case *ast.ParenExpr:
		return isNamed(e.X)
	}
	return false
}
