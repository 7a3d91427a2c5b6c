package directive

import (
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/internal/nearest"
)

// A Policy is a //ratelimit:policy line: a limit that directives use by name. All of
// them count together, each key of its own.
type Policy struct {
	Name     string
	File     *File
	Settings *Settings
	Users    int // directives of its package that use it
}

var policyName = regexp.MustCompile(`^[\pL_][\pL\pN_-]*$`)

// parsePolicy reads the name of a policy, which that of a package may precede.
func parsePolicy(text string) (string, error) {
	pkg, name, qualified := strings.Cut(text, ".")
	if !qualified {
		pkg, name = "p", text
	}
	if !policyName.MatchString(pkg) || !policyName.MatchString(name) {
		return "", fmt.Errorf("%q is not the name of a policy: write one such as api, or limits.api for that of package limits", text)
	}
	return text, nil
}

// addPolicy adds a policy line of a file. It reports one that has no name, or has
// options that only a method or an interface can have.
func (src *File) addPolicy(d *Directive, report diag.Func) {
	d.readShared(report)
	name := d.Settings.Name()
	if name == "" && !d.Settings.written["name"] {
		report(d.Pos, "a policy needs a name: write %spolicy name=api, and then use=api in directives", Prefix).Mark(Prefix + "policy")
	} else if !policyName.MatchString(name) {
		report(d.Settings.Place("name"), "name: %q is not the name of a policy: write letters, digits and -, such as api", name).Mark(name)
	} else {
		src.Policies = append(src.Policies, &Policy{Name: name, File: src, Settings: d.Settings})
	}
}

// readShared reads the options of a line that is for many directives. It reports
// those that only a method or an interface can have.
func (d *Directive) readShared(report diag.Func) {
	var kept []assignment
	for _, a := range d.options {
		row := optionNamed(a.name)
		switch {
		case row != nil && row.ownOnly:
			report(a.pos, "option %q belongs to the directives of methods and interfaces: write it there", a.name).Mark(a.name)
		case row != nil && row.perCall && strings.Contains(a.value.Text, "#"):
			report(a.value.Pos, "%s: %s depends on the call, and this line is for all calls: write a constant", a.name, a.value.Text).Mark(a.value.Tail(0))
		case d.defaults && (a.name == "name" || a.name == "prefix"):
			report(a.pos, "option %q is different for each limit: write it in directives, or declare a policy", a.name).Mark(a.name)
		default:
			kept = append(kept, a)
		}
	}
	d.options = kept
	d.Settings = newSettings(d, inPolicy, report)
}

// settings returns those of all directives of a file, in their order for each
// declaration.
func (src *File) settings() []*Settings {
	var all []*Settings
	add := func(ds []*Directive) {
		for _, d := range ds {
			if d.Settings != nil {
				all = append(all, d.Settings)
			}
		}
	}
	for _, decl := range src.Decls {
		add(decl.Own)
		if decl.Concrete == nil { // those of a concrete type are among src.Methods
			for _, name := range slices.Sorted(maps.Keys(decl.Methods)) {
				add(decl.Methods[name])
			}
		}
	}
	for _, m := range src.Methods {
		add(m.directives)
	}
	return all
}

// Foreign returns the directives of a file that use policies of other packages, by
// the name that the file has for the package.
func (src *File) Foreign() map[string][]*Settings {
	found := map[string][]*Settings{}
	for _, s := range src.settings() {
		if pkg, _, qualified := strings.Cut(s.Use(), "."); qualified {
			found[pkg] = append(found[pkg], s)
		}
	}
	return found
}

// Evaluates reports whether expressions of a file need what a package with a name
// declares. Policies of it are read, and never evaluated.
func (src *File) Evaluates(name string) bool {
	qualified := regexp.MustCompile(`(^|[^\pL\pN_.#])` + regexp.QuoteMeta(name) + `\.`)
	for _, s := range src.settings() {
		if slices.ContainsFunc(s.options, func(a assignment) bool { return a.name != "use" && qualified.MatchString(a.value.Text) }) {
			return true
		}
	}
	return false
}

// LinkPolicies gives the policies of each package to the directives that use them.
// It reports those that are unknown or declared twice.
func LinkPolicies(files []*File, report diag.Func) {
	byPackage, defaults := map[string]map[string]*Policy{}, map[string]*Policy{}
	for _, src := range files {
		pkg := src.Syntax.Name.Name
		for _, d := range src.Defaults {
			if defaults[pkg] != nil {
				report(d.Settings.Pos, "package %s has another line of defaults: write all of them in one", pkg).Mark(Prefix + "defaults")
				continue
			}
			defaults[pkg] = d
		}
		if byPackage[pkg] == nil {
			byPackage[pkg] = map[string]*Policy{}
		}
		for _, p := range src.Policies {
			if byPackage[pkg][p.Name] != nil {
				report(p.Settings.Place("name"), "name: package %s has another policy %s: rename one of them", pkg, p.Name).Mark(p.Name)
				continue
			}
			byPackage[pkg][p.Name] = p
		}
	}
	for _, src := range files {
		known := byPackage[src.Syntax.Name.Name]
		for _, p := range src.Policies {
			p.Settings.defaults = defaults[src.Syntax.Name.Name]
		}
		for _, s := range src.settings() {
			s.defaults = defaults[src.Syntax.Name.Name]
			if name := s.Use(); name != "" && !strings.Contains(name, ".") {
				s.link(known[name], slices.Sorted(maps.Keys(known)), report)
			}
		}
	}
}

// LinkForeign gives policies of another package to the directives that use them.
func LinkForeign(uses []*Settings, policies []*Policy, report diag.Func) {
	known := map[string]*Policy{}
	for _, p := range policies {
		known[p.Name] = p
	}
	for _, s := range uses {
		pkg, name, _ := strings.Cut(s.Use(), ".")
		var names []string
		for known := range known {
			names = append(names, pkg+"."+known)
		}
		slices.Sort(names)
		s.link(known[name], names, report)
	}
}

func (s *Settings) link(p *Policy, names []string, report diag.Func) {
	if p != nil {
		s.policy = p
		p.Users++
		return
	}
	name := s.Use()
	hint, near := Suggest(name, names), nearest.Name(name, names)
	if near == "" && len(names) > 0 {
		hint = ": there are " + strings.Join(names, ", ")
	} else if near == "" {
		hint = fmt.Sprintf(": declare it with %spolicy name=%s", Prefix, name[strings.LastIndexByte(name, '.')+1:])
	}
	report(s.Place("use"), "use: there is no policy %s%s", name, hint).Mark(name).ReplaceBy(near)
}

// Use returns the name of the policy that a directive uses, or "".
func (s *Settings) Use() string { return get[string](s, "use") }

// Policy returns the policy that a directive uses, or nil.
func (s *Settings) Policy() *Policy { return s.policy }

// Adopt takes over what a directive's policy says and the directive does not. The
// policy's constants are known.
func (s *Settings) Adopt() {
	from := s.policy.Settings
	for name, v := range from.values {
		if _, given := s.values[name]; given || name == "name" {
			continue
		}
		s.values[name], s.places[name] = v, from.places[name]
		s.adoptNamed(from, name)
		if name == "max" {
			s.End = from.End // where to write what a warning about it asks for
		}
	}
}

func explainUse(s *Settings) string {
	if s.policy == nil {
		return ""
	}
	text := "It is the policy " + s.Use() + "."
	if !s.written["prefix"] {
		text += " All limits that use it count together."
	}
	return text
}

// outside reports whether a comment stands outside of all declarations.
func outside(group *ast.CommentGroup, decls []ast.Node) bool {
	return !slices.ContainsFunc(decls, func(n ast.Node) bool {
		from := n.Pos()
		switch n := n.(type) {
		case *ast.GenDecl:
			if n.Doc != nil {
				from = n.Doc.Pos()
			}
		case *ast.FuncDecl:
			if n.Doc != nil {
				from = n.Doc.Pos()
			}
		}
		return from <= group.Pos() && group.End() <= n.End()
	})
}
