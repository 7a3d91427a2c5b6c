package generator

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A stub is a file as the type checker is to see it. Code that names a wrapper
// must compile while the wrapper is not written yet, and nothing that an old
// generated file says may matter. So each source file declares its wrappers
// itself, and each generated file is empty.
type stub struct {
	content []byte
	ast     *ast.File // nil: to be parsed
	lines   []int     // of a source file: where the stubs of each interface start
}

// ifaceAt returns the index of the interface whose stub is on a line, or -1.
func (s stub) ifaceAt(line int) int {
	i, exact := slices.BinarySearch(s.lines, line)
	if exact {
		return i
	}
	return i - 1
}

// withStubs appends declarations of a file's wrappers. What stands before
// keeps its position. The constructors' limiter is the real one if the package
// imports the runtime anyway, else anything, so that the runtime need not be
// there, or built, to generate.
func withStubs(src *sourceFile, content []byte, usesRuntime bool) stub {
	text := strings.Builder{}
	text.Write(content)
	var lines []int
	for _, decl := range src.ifaces {
		lines = append(lines, strings.Count(text.String(), "\n")+2)
		name, wrapped := decl.spec.Name.Name, decl.interfaceName()
		params, args := stubParams(src, decl.spec.TypeParams, content)
		if decl.concrete != nil {
			stubInterface(&text, decl, params, args)
		}
		embedded := wrapped + args
		if args == "" && hasMethod(decl.spec, name) {
			// An embedded field of that name would hide the method.
			embedded = stubPrefix + name
			fmt.Fprintf(&text, "\ntype %s = %s\n", embedded, name)
		}
		fmt.Fprintf(&text, "\ntype %s%s struct{ %s }\n", wrapperName(name), params, embedded)
		fmt.Fprintf(&text, "func %s%s(next %s%s, limiter %s) *%s%s { panic(next) }\n",
			constructorName(name), params, wrapped, args, limiterName(src.path), wrapperName(name), args)
	}
	limiter := "any"
	if usesRuntime {
		limiter = "*" + stubRuntime + ".Limiter"
	}
	fmt.Fprintf(&text, "\ntype %s = %s\n", limiterName(src.path), limiter)
	return stub{content: []byte(text.String()), lines: lines}
}

// stubParams copies type parameters, as declared and as arguments, giving names
// to blank ones.
func stubParams(src *sourceFile, list *ast.FieldList, content []byte) (params, args string) {
	if list == nil {
		return "", ""
	}
	var decl, names []string
	for _, f := range list.List {
		constraint := string(content[f.Type.Pos()-src.ast.FileStart : f.Type.End()-src.ast.FileStart])
		for _, n := range f.Names {
			name := n.Name
			if name == "_" {
				name = fmt.Sprint(stubPrefix, len(names))
			}
			decl = append(decl, name+" "+constraint+",")
			names = append(names, name)
		}
	}
	return "[" + strings.Join(decl, " ") + "]", "[" + strings.Join(names, ", ") + "]"
}

func hasMethod(spec *ast.TypeSpec, name string) bool {
	_, ok := explicitOrder(spec)[name]
	return ok
}

// emptyStub stands in for the generated file. It imports what only directives
// use, so that the go command loads it.
func emptyStub(src *sourceFile, content []byte) stub {
	var text strings.Builder
	text.WriteString(buildLines(content))
	fmt.Fprintf(&text, "package %s\n", src.ast.Name.Name)
	for _, spec := range src.imports {
		fmt.Fprintf(&text, "import _ %q\n", spec.path)
	}
	return stub{content: []byte(text.String())}
}

// importRuntime makes the runtime's name known in a file whose stubs use it.
// Another file of the package imports it, so it is loaded.
func importRuntime(file *ast.File) {
	spec := &ast.ImportSpec{
		Name: &ast.Ident{NamePos: file.Name.End(), Name: stubRuntime},
		Path: &ast.BasicLit{ValuePos: file.Name.End(), Kind: token.STRING, Value: strconv.Quote(runtimePath)},
	}
	decl := &ast.GenDecl{TokPos: file.Name.End(), Tok: token.IMPORT, Specs: []ast.Spec{spec}}
	file.Decls = append([]ast.Decl{decl}, file.Decls...)
}

// buildLines returns the //go:build line of a file, ready to start another.
func buildLines(content []byte) string {
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if constraint.IsGoBuild(line) {
			return line + "\n\n"
		}
		if line != "" && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "/*") && !strings.HasPrefix(line, "*") {
			break
		}
	}
	return ""
}

const (
	runtimePath  = "github.com/rategen/rategen/runtime"
	adaptivePath = runtimePath + "/adaptive"
)

// stubPrefix starts the names that exist only while generating.
const (
	stubPrefix  = "rategenLimiterOf_"
	stubRuntime = stubPrefix + "runtime"
)

var notInName = regexp.MustCompile(`[^\pL\pN_]`)

func limiterName(path string) string {
	return stubPrefix + notInName.ReplaceAllString(strings.TrimSuffix(filepath.Base(path), ".go"), "_")
}

func wrapperName(iface string) string {
	if ast.IsExported(iface) {
		return "RateLimited" + iface
	}
	return "rateLimited" + upperFirst(iface)
}

func constructorName(iface string) string {
	if ast.IsExported(iface) {
		return "NewRateLimited" + iface
	}
	return "newRateLimited" + upperFirst(iface)
}

func upperFirst(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(c)) + s[n:]
}

// lowerFirst makes a name unexported: employeeService, httpClient, id.
func lowerFirst(s string) string {
	runes := []rune(s)
	for i := range runes {
		if i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) || !unicode.IsUpper(runes[i]) {
			break
		}
		runes[i] = unicode.ToLower(runes[i])
	}
	return string(runes)
}

var mapKeys = maps.Keys[map[string][]byte]
