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
	unresolved = regexp.MustCompile(`^could not import (\S+) \(invalid package name`)
	quoted     = regexp.MustCompile(`"?([^\s"()]+)"?`)
)

// reportBroken reports the go command's and the compiler's errors in a
// package.
func (r *run) reportBroken(p *packages.Package, d *packageDir) bool {
	taken := map[string]*ifaceDecl{} // the names to be generated
	imports := map[string]*importSpec{}
	for _, src := range d.sources {
		for _, decl := range src.ifaces {
			taken[wrapperName(decl.spec.Name.Name)] = decl
			taken[constructorName(decl.spec.Name.Name)] = decl
		}
		for _, spec := range src.imports {
			imports[spec.path] = spec
		}
	}
	errs := compilerErrors(p)
	for _, e := range errs {
		msg := strings.TrimSpace(e.Msg)
		if m := other.FindStringSubmatch(msg); m != nil && taken[m[1]] != nil {
			continue
		}
		if m := redeclared.FindStringSubmatch(msg); m != nil && taken[m[1]] != nil {
			decl := taken[m[1]]
			r.at(decl.spec.Name.Pos(), "the package declares %s already, which is to be generated for %s: rename one of them", m[1], decl.spec.Name.Name)
			continue
		}
		pos := parsePosition(e.Pos)
		if s, ok := d.overlay[pos.Filename]; ok && s.ast == nil {
			if spec := findImport(imports, msg); spec != nil {
				r.at(spec.pos, "ratelimit:import: package %s cannot be imported: check its path, and go.mod", spec.path)
				continue
			}
		}
		if decl := d.stubbedAt(pos); decl != nil {
			r.reportStub(decl, msg)
			continue
		}
		if m := unresolved.FindStringSubmatch(msg); m != nil && p.Imports[m[1]] != nil && len(p.Imports[m[1]].Errors) > 0 {
			// The type checker does not know why, the go command does.
			msg = strings.TrimSpace(p.Imports[m[1]].Errors[0].Msg)
		}
		r.atPosition(pos, "%s", msg)
	}
	return len(errs) > 0
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

func findImport(imports map[string]*importSpec, msg string) *importSpec {
	for _, m := range quoted.FindAllStringSubmatch(msg, -1) {
		if spec := imports[strings.TrimSuffix(m[1], ";")]; spec != nil {
			return spec
		}
	}
	return nil
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
