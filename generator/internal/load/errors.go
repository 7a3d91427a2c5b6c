package load

import (
	"go/token"
	"regexp"
	"strconv"
	"strings"

	"github.com/rategen/rategen/generator/internal/directive"
	"golang.org/x/tools/go/packages"
)

// loadErrors reports what the go command and the compiler say about a package.
type loadErrors struct {
	*Program
	dir *dir
}

// reportDirectory reports the errors of every package in the directory, and whether
// there were any.
func (e loadErrors) reportDirectory(pkgs []*packages.Package) bool {
	found := false
	for _, p := range pkgs {
		if p.PkgPath == e.dir.path || p.ForTest == e.dir.path {
			found = e.reportPackage(p) || found
		}
	}
	return found
}

var unresolved = regexp.MustCompile(`(?s)^could not import (\S+) \((.*)\)$`)

// reportPackage reports the go command's and the compiler's errors in a package
// if they reach what is to be generated. Those that do not are the compiler's
// to tell.
func (e loadErrors) reportPackage(p *packages.Package) bool {
	d, report := e.dir, e.report
	affected := p.Types == nil || isAffected(p, d, e.fset)
	found := d.taken
	for _, err := range compilerErrors(p) {
		msg := strings.TrimSpace(err.Msg)
		pos := parsePosition(err.Pos)
		if s, ok := d.overlay[pos.Filename]; ok && s.ast == nil {
			continue // an import of a directive, which is reported where it stands
		}
		if decl := d.stubbedAt(pos); decl != nil {
			if decl.Concrete != nil && strings.Contains(msg, StubPrefix) {
				continue // the go command has rewritten the method's file for cgo
			}
			e.reportStub(decl, msg)
			found = true
			continue
		}
		if !affected {
			continue
		}
		if m := unresolved.FindStringSubmatch(msg); m != nil {
			// The go command knows why.
			if i := p.Imports[m[1]]; i != nil && len(i.Errors) > 0 {
				msg = strings.TrimSpace(i.Errors[0].Msg)
			} else if i := e.list.pkgs[m[1]]; i != nil && i.Error != nil {
				msg = strings.TrimSpace(i.Error.Err)
			}
		}
		report.AtPosition(pos, "%s", msg)
		found = true
	}
	if affected && !found {
		e.reportTypes()
	}
	return found || affected
}

// reportTypes reports a package whose interfaces need types that another
// package was to declare, and did not.
func (e loadErrors) reportTypes() {
	for _, src := range e.dir.sources {
		for _, decl := range src.Decls {
			e.report.At(decl.Spec.Name.Pos(), "%s needs a type of a package that does not compile: go build %s says more", decl.Spec.Name.Name, e.dir.path)
		}
	}
}

// stubbedAt returns the interface whose stub is at a position, or nil.
func (d *dir) stubbedAt(pos token.Position) *directive.Decl {
	for _, src := range d.sources {
		if i := d.overlay[src.Path].ifaceAt(pos.Line); src.Path == pos.Filename && i >= 0 {
			return src.Decls[i]
		}
	}
	return nil
}

// reportStub reports an error in code that only the checker sees as one of
// the interface it was made for.
func (e loadErrors) reportStub(decl *directive.Decl, msg string) {
	name := decl.Spec.Name
	if strings.Contains(msg, "outside a type constraint") {
		e.report.At(name.Pos(), "interface %s is a type constraint, of which there are no values to wrap: remove the directive", name.Name)
		return
	}
	e.report.At(name.Pos(), "%s cannot be wrapped: %s", name.Name, msg)
}

// parsePosition reads the file:line:column that go/packages gives.
func parsePosition(s string) token.Position {
	var numbers [2]int // the last one first
	if s == "-" {
		return token.Position{}
	}
	for i := range numbers {
		at := strings.LastIndexByte(s, ':')
		n, err := strconv.Atoi(s[at+1:])
		if at < 0 || err != nil {
			break
		}
		s, numbers[i] = s[:at], n
	}
	if numbers[1] == 0 {
		return token.Position{Filename: s, Line: numbers[0]}
	}
	return token.Position{Filename: s, Line: numbers[1], Column: numbers[0]}
}
