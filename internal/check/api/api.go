package main

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// api returns a line for each exported declaration of a package, sorted.
func api(p *types.Package) []string {
	l := &lister{pkg: p}
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		switch object := object.(type) {
		case *types.Const:
			l.add("const %s %s = %s", name, l.text(object.Type()), object.Val().ExactString())
		case *types.Var:
			l.add("var %s %s", name, l.text(object.Type()))
		case *types.Func:
			l.add("func %s%s", name, l.signature(object.Signature()))
		case *types.TypeName:
			l.typeName(object)
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
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *lister) typeName(object *types.TypeName) {
	name := object.Name()
	if object.IsAlias() {
		l.add("type %s = %s", name, l.text(types.Unalias(object.Type())))
		return
	}
	named := object.Type().(*types.Named)
	name += l.typeParams(named.TypeParams())
	switch u := named.Underlying().(type) {
	case *types.Interface:
		l.add("type %s %s", name, l.interfaceOf(u))
		return
	case *types.Struct:
		l.add("type %s struct%s", name, hidden(u))
		for f := range u.Fields() {
			if f.Exported() && f.Embedded() {
				l.add("type %s struct, embedded %s", name, l.text(f.Type()))
			} else if f.Exported() {
				l.add("type %s struct, %s %s", name, f.Name(), l.text(f.Type()))
			}
		}
	default:
		l.add("type %s %s", name, l.text(u))
	}
	for _, m := range typeutil.IntuitiveMethodSet(named, nil) {
		if m.Obj().Exported() {
			pointer := ""
			if types.NewMethodSet(named).Lookup(l.pkg, m.Obj().Name()) == nil {
				pointer = "*"
			}
			l.add("method (%s%s) %s%s", pointer, object.Name(), m.Obj().Name(), l.signature(m.Type().(*types.Signature)))
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

// interfaceOf returns an interface in one line, its methods sorted.
func (l *lister) interfaceOf(i *types.Interface) string {
	var parts []string
	for m := range i.Methods() {
		if m.Exported() {
			parts = append(parts, m.Name()+l.signature(m.Signature()))
		} else {
			parts = append(parts, "unexported methods")
		}
	}
	for t := range i.EmbeddedTypes() {
		if _, ok := t.Underlying().(*types.Interface); !ok {
			parts = append(parts, l.text(t))
		}
	}
	slices.Sort(parts)
	return "interface { " + strings.Join(slices.Compact(parts), "; ") + " }"
}
