package generator

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
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
}

// withStubs appends declarations of a file's wrappers. What stands before
// keeps its position.
func withStubs(src *sourceFile, content []byte) []byte {
	text := strings.Builder{}
	text.Write(content)
	offset := func(p token.Pos) int { return int(p - src.ast.FileStart) }
	for _, decl := range src.ifaces {
		name := decl.spec.Name.Name
		params, args := "", ""
		if list := decl.spec.TypeParams; list != nil {
			params = string(content[offset(list.Opening)+1 : offset(list.Closing)])
			var names []string
			for _, f := range list.List {
				for _, n := range f.Names {
					names = append(names, n.Name)
				}
			}
			params, args = "["+params+"]", "["+strings.Join(names, ", ")+"]"
		}
		fmt.Fprintf(&text, "\ntype %s%s struct{ %s%s }\n", wrapperName(name), params, name, args)
		fmt.Fprintf(&text, "func %s%s(next %s%s, limiter %s) *%s%s { panic(next) }\n",
			constructorName(name), params, name, args, limiterName(src.path), wrapperName(name), args)
	}
	return []byte(text.String())
}

// limiterStub stands in for the generated file. It declares the constructors'
// limiter: the real one if the package imports the runtime anyway, else
// anything, so that the runtime need not be there, or built, to generate.
func limiterStub(src *sourceFile, content []byte, usesRuntime bool) stub {
	var text strings.Builder
	text.WriteString(buildLines(content))
	fmt.Fprintf(&text, "package %s\n", src.ast.Name.Name)
	for _, spec := range src.imports {
		fmt.Fprintf(&text, "import _ %q\n", spec.path)
	}
	if usesRuntime {
		fmt.Fprintf(&text, "import rategenruntime %q\ntype %s = *rategenruntime.Limiter\n", runtimePath, limiterName(src.path))
	} else {
		fmt.Fprintf(&text, "type %s = any\n", limiterName(src.path))
	}
	return stub{content: []byte(text.String())}
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

const runtimePath = "github.com/rategen/rategen/runtime"

// stubPrefix starts the names that exist only while generating.
const stubPrefix = "rategenLimiterOf_"

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
