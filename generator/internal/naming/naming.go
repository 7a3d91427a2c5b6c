// Package naming chooses the names in generated code: files, types, constructors
// and imported packages.
package naming

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The packages that generated code imports.
const (
	RuntimePath  = "github.com/rategen/rategen/runtime"
	AdaptivePath = RuntimePath + "/adaptive"
	HTTPPath     = RuntimePath + "/ratehttp"
	RulePath     = RuntimePath + "/rule"
	WrapperPath  = RuntimePath + "/wrapper"
)

// Wrapper returns the name of an interface's wrapper.
func Wrapper(iface string) string {
	if ast.IsExported(iface) {
		return "RateLimited" + iface
	}
	return "rateLimited" + UpperFirst(iface)
}

// Constructor returns the name of the function that makes a wrapper.
func Constructor(wrapper string) string {
	if ast.IsExported(wrapper) {
		return "New" + wrapper
	}
	return "new" + UpperFirst(wrapper)
}

// AssumedImport returns the name that a package is assumed to have by its import path, as
// goimports does. An import of one that has another is written with the name.
func AssumedImport(importPath string) string {
	base := path.Base(importPath)
	if n, err := strconv.Atoi(strings.TrimPrefix(base, "v")); err == nil && base[0] == 'v' && n > 0 && path.Dir(importPath) != "." {
		base = path.Base(path.Dir(importPath))
	}
	base = strings.TrimPrefix(base, "go-")
	if i := strings.IndexFunc(base, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' }); i >= 0 {
		base = base[:i]
	}
	return base
}

// UpperFirst makes a name exported.
func UpperFirst(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(c)) + s[n:]
}

// LowerFirst makes a name unexported: employeeService, httpClient, id.
func LowerFirst(s string) string {
	runes := []rune(s)
	for i := range runes {
		if i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) || !unicode.IsUpper(runes[i]) {
			break
		}
		runes[i] = unicode.ToLower(runes[i])
	}
	return string(runes)
}

// Free returns base, or base with the first number from 2 that makes it a
// name not taken.
func Free(base string, taken map[string]bool) string {
	name := base
	for n := 2; taken[name] || token.IsKeyword(name) || name == "_" || name == ""; n++ {
		name = fmt.Sprint(base, n)
	}
	return name
}
