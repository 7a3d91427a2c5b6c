package main

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// api returns a line for each exported declaration of a package, sorted. Each begins with
// the package's path within the module.
func api(p *types.Package) []string {
	l := &lister{pkg: p}
	for _, name := range p.Scope().Names() {
		switch object := p.Scope().Lookup(name).(type) {
		case *types.TypeName:
			if object.Exported() {
				l.typeName(object)
			}
		case *types.Const:
			if object.Exported() {
				l.add("%s = %s", l.object(object), object.Val().ExactString())
			}
		default:
			if object.Exported() {
				l.add("%s", l.object(object))
			}
		}
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines)
}

type lister struct {
	pkg   *types.Package
	lines []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, within(l.pkg.Path())+", "+fmt.Sprintf(format, args...))
}

func (l *lister) object(o types.Object) string { return types.ObjectString(o, l.qualifier) }

func (l *lister) text(t types.Type) string { return types.TypeString(t, l.qualifier) }

// qualifier writes the packages of the module by their paths within it, and its own not at all.
func (l *lister) qualifier(p *types.Package) string {
	if p == l.pkg {
		return ""
	}
	return within(p.Path())
}

func (l *lister) typeName(object *types.TypeName) {
	if object.IsAlias() {
		l.add("%s", l.object(object))
		return
	}
	named := object.Type().(*types.Named)
	switch u := named.Underlying().(type) {
	case *types.Struct:
		l.add("type %s struct%s", l.text(named), hidden(u))
		for f := range u.Fields() {
			if f.Exported() {
				l.add("type %s struct, %s", l.text(named), l.object(f))
			}
		}
	case *types.Interface:
		l.add("type %s interface{%s}", l.text(named), l.methods(u))
		return
	default:
		l.add("%s", l.object(object))
	}
	for _, m := range typeutil.IntuitiveMethodSet(named, nil) {
		if m.Obj().Exported() {
			pointer := ""
			if types.NewMethodSet(named).Lookup(l.pkg, m.Obj().Name()) == nil {
				pointer = "*"
			}
			l.add("method (%s%s) %s%s", pointer, object.Name(), m.Obj().Name(), strings.TrimPrefix(l.text(m.Type()), "func"))
		}
	}
}

// hidden tells a struct with unexported fields, which others cannot write without
// names of fields, and whether values can be compared, which a new field can end.
func hidden(s *types.Struct) string {
	var text string
	for f := range s.Fields() {
		if !f.Exported() {
			text = " with unexported fields"
		}
	}
	if !types.Comparable(s) {
		text += ", not comparable"
	}
	return text
}

// methods returns those of an interface in one line, since a new one breaks other
// implementations.
func (l *lister) methods(i *types.Interface) string {
	var parts []string
	for m := range i.Methods() {
		part := "unexported methods"
		if m.Exported() {
			part = m.Name() + strings.TrimPrefix(l.text(m.Signature()), "func")
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "; ")
}
