package generator

import (
	"go/token"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// reportLoad reports the errors of every package in a directory.
func (r *run) reportLoad(pkgs []*packages.Package, d *packageDir) bool {
	found := false
	for _, p := range pkgs {
		if p.PkgPath == d.path || p.ForTest == d.path {
			found = r.reportBroken(p, d) || found
		}
	}
	return found
}

var (
	redeclared = regexp.MustCompile(`^(\S+) redeclared in this block`)
	other      = regexp.MustCompile(`^other declaration of (\S+)`)
	unresolved = regexp.MustCompile(`(?s)^could not import (\S+) \((.*)\)$`)
)

// reportBroken reports the go command's and the compiler's errors in a package
// if they reach what is to be generated. Those that do not are the compiler's
// to tell.
func (r *run) reportBroken(p *packages.Package, d *packageDir) bool {
	taken := map[string]*ifaceDecl{} // the names to be generated
	for _, src := range d.sources {
		for _, decl := range src.ifaces {
			for _, name := range decl.generates() {
				taken[name] = decl
			}
		}
	}
	affected := p.Types == nil || isAffected(p, d, r.fset)
	found := false
	for _, e := range compilerErrors(p) {
		msg := strings.TrimSpace(e.Msg)
		if m := other.FindStringSubmatch(msg); m != nil && taken[m[1]] != nil {
			continue
		}
		if m := redeclared.FindStringSubmatch(msg); m != nil && taken[m[1]] != nil {
			decl := taken[m[1]]
			r.at(decl.spec.Name.Pos(), "the package declares %s already, which is to be generated for %s: rename one of them", m[1], decl.spec.Name.Name)
			found = true
			continue
		}
		pos := parsePosition(e.Pos)
		if s, ok := d.overlay[pos.Filename]; ok && s.ast == nil {
			continue // an import of a directive, which is reported where it stands
		}
		if decl := d.stubbedAt(pos); decl != nil {
			if decl.concrete != nil && strings.Contains(msg, stubPrefix) {
				continue // the go command has rewritten the method's file for cgo
			}
			r.reportStub(decl, msg)
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
			} else if i := r.list.pkgs[m[1]]; i != nil && i.Error != nil {
				msg = strings.TrimSpace(i.Error.Err)
			}
		}
		r.atPosition(pos, "%s", msg)
		found = true
	}
	if affected && !found {
		r.reportFaults(d)
	}
	return found || affected
}

// reportFaults reports a package whose interfaces need types that another
// package was to declare, and did not.
func (r *run) reportFaults(d *packageDir) {
	for _, src := range d.sources {
		for _, decl := range src.ifaces {
			r.at(decl.spec.Name.Pos(), "%s needs a type of a package that does not compile: go build %s says more", decl.spec.Name.Name, d.path)
		}
	}
}

// stubbedAt returns the interface whose stub is at a position, or nil.
func (d *packageDir) stubbedAt(pos token.Position) *ifaceDecl {
	for _, src := range d.sources {
		if i := d.overlay[src.path].ifaceAt(pos.Line); src.path == pos.Filename && i >= 0 {
			return src.ifaces[i]
		}
	}
	return nil
}

// reportStub reports an error in code that only the checker sees as one of
// the interface it was made for.
func (r *run) reportStub(decl *ifaceDecl, msg string) {
	name := decl.spec.Name
	if strings.Contains(msg, "outside a type constraint") {
		r.at(name.Pos(), "interface %s is a type constraint, of which there are no values to wrap: remove the directive", name.Name)
		return
	}
	r.at(name.Pos(), "%s cannot be wrapped: %s", name.Name, msg)
}

// parsePosition reads the file:line:column that go/packages gives.
func parsePosition(s string) token.Position {
	var pos token.Position
	cutNumber := func() (n int, ok bool) {
		i := strings.LastIndexByte(s, ':')
		if i < 0 {
			return 0, false
		}
		n, err := strconv.Atoi(s[i+1:])
		if err != nil {
			return 0, false
		}
		s = s[:i]
		return n, true
	}
	if s == "-" {
		return pos
	}
	if n, ok := cutNumber(); ok {
		pos.Line = n
		if m, ok := cutNumber(); ok {
			pos.Line, pos.Column = m, n
		}
	}
	pos.Filename = s
	return pos
}
