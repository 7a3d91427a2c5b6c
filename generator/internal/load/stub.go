package load

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/generator/internal/output"
)

// A stub is a file as the type checker is to see it. Code that names a wrapper
// must compile while the wrapper is not written yet, and nothing that an old
// generated file says may matter. So each source file declares its wrappers
// itself, and each generated file is empty.
type stub struct {
	content []byte
	ast     *ast.File  // nil: to be parsed
	lines   []int      // of a source file: where the stubs of each interface start
	decls   []ast.Decl // of a source file: the stubs in its syntax
}

// ifaceAt returns the index of the interface whose stub is on a line, or -1.
func (s stub) ifaceAt(line int) int {
	i, exact := slices.BinarySearch(s.lines, line)
	if exact {
		return i
	}
	return i - 1
}

// withStubs appends declarations of a file's wrappers, to its text and to its
// syntax. The text is for the go command, which rewrites files that import "C";
// the syntax is for the type checker, and the file need not be parsed again.
//
// The constructors' limiter is the real one if the package imports the runtime
// anyway, else anything, so that the runtime need not be there, or built, to
// generate.
func withStubs(fset *token.FileSet, src *directive.File, content []byte, usesRuntime bool) (stub, error) {
	text := strings.Builder{}
	text.Write(content)
	var lines []int
	for _, decl := range src.Decls {
		lines = append(lines, strings.Count(text.String(), "\n")+2)
		name, wrapped := decl.Spec.Name.Name, decl.InterfaceName()
		params, args, constraints := stubParams(src, decl.Spec.TypeParams, content)
		if decl.Concrete != nil {
			stubConstraints(&text, decl, params, constraints)
			stubInterface(&text, decl, params, args)
		}
		embedded := wrapped + args
		if args == "" && hasMethod(decl.Spec, name) {
			// An embedded field of that name would hide the method.
			embedded = StubPrefix + name
			fmt.Fprintf(&text, "\ntype %s = %s\n", embedded, name)
		}
		fmt.Fprintf(&text, "\ntype %s%s struct{ %s }\n", decl.WrapperName(), params, embedded)
		fmt.Fprintf(&text, "func %s%s(_ %s%s, _ %s) *%s%s { panic(0) }\n",
			decl.ConstructorName(), params, wrapped, args, limiterName(src.Path), decl.WrapperName(), args)
	}
	limiter := "any"
	if usesRuntime {
		importRuntime(src.Syntax)
		limiter = "*" + stubRuntime + ".Limiter"
	}
	fmt.Fprintf(&text, "\ntype %s = %s\n", limiterName(src.Path), limiter)
	decls, err := appendDecls(fset, src, text.String()[len(content):], lines[0]-2)
	return stub{content: []byte(text.String()), ast: src.Syntax, lines: lines, decls: decls}, err
}

// appendDecls adds the declarations in a text to a file's syntax, and returns
// them. Their
// positions are those that they have in the file with the text appended, in
// which the text starts in the given line.
func appendDecls(fset *token.FileSet, src *directive.File, text string, line int) ([]ast.Decl, error) {
	text = fmt.Sprintf("package %s\n//line %s:%d\n%s", src.Syntax.Name.Name, src.Path, line+1, text)
	file, err := parser.ParseFile(fset, src.Path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	src.Syntax.Decls = append(src.Syntax.Decls, file.Decls...)
	return file.Decls, nil
}

// stubParams copies type parameters, as declared and as arguments, giving names
// to blank ones, and the constraint of each.
func stubParams(src *directive.File, list *ast.FieldList, content []byte) (params, args string, constraints []string) {
	if list == nil {
		return "", "", nil
	}
	taken := map[string]bool{} // by the constraints and the other parameters
	ast.Inspect(list, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			taken[id.Name] = true
		}
		return true
	})
	var decl, names []string
	for _, f := range list.List {
		constraint := string(content[f.Type.Pos()-src.Syntax.FileStart : f.Type.End()-src.Syntax.FileStart])
		for _, n := range f.Names {
			name := n.Name
			if name == "_" {
				name = naming.Free(fmt.Sprint("T", len(names)), taken)
			}
			decl = append(decl, name+" "+constraint+",")
			names, constraints = append(names, name), append(constraints, constraint)
		}
	}
	return "[" + strings.Join(decl, " ") + "]", "[" + strings.Join(names, ", ") + "]", constraints
}

func hasMethod(spec *ast.TypeSpec, name string) bool {
	_, ok := directive.ExplicitOrder(spec)[name]
	return ok
}

// emptyStub stands in for the generated file. It imports what only directives
// use, so that the go command loads it.
func emptyStub(src *directive.File, content []byte) stub {
	var text strings.Builder
	text.WriteString(output.BuildLines(content))
	fmt.Fprintf(&text, "package %s\n", src.Syntax.Name.Name)
	for _, spec := range src.Imports {
		fmt.Fprintf(&text, "import _ %q\n", spec.Path)
	}
	return stub{content: []byte(text.String())}
}

// importRuntime makes the runtime's name known in a file whose stubs use it.
// Another file of the package imports it, so it is loaded.
func importRuntime(file *ast.File) {
	spec := &ast.ImportSpec{
		Name: &ast.Ident{NamePos: file.Name.End(), Name: stubRuntime},
		Path: &ast.BasicLit{ValuePos: file.Name.End(), Kind: token.STRING, Value: strconv.Quote(naming.RuntimePath)},
	}
	decl := &ast.GenDecl{TokPos: file.Name.End(), Tok: token.IMPORT, Specs: []ast.Spec{spec}}
	file.Decls = append([]ast.Decl{decl}, file.Decls...)
}

const (
	// StubPrefix starts the names that exist only while generating.
	StubPrefix  = "rategenLimiterOf_"
	stubRuntime = StubPrefix + "runtime"
)

var notInName = regexp.MustCompile(`[^\pL\pN]`)

// limiterName returns the name that a file's stubs have for the limiter's type.
// Files with different names, as a-b.go and a_b.go, have different ones.
func limiterName(path string) string {
	return StubPrefix + notInName.ReplaceAllStringFunc(strings.TrimSuffix(filepath.Base(path), ".go"), func(c string) string {
		return fmt.Sprintf("_%x_", c)
	})
}
