package main

import (
	"fmt"
	"go/types"
	"strings"
)

// text returns a type without the names of parameters, which may change.
func (l *lister) text(t types.Type) string {
	switch t := t.(type) {
	case *types.Pointer:
		return "*" + l.text(t.Elem())
	case *types.Slice:
		return "[]" + l.text(t.Elem())
	case *types.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), l.text(t.Elem()))
	case *types.Map:
		return "map[" + l.text(t.Key()) + "]" + l.text(t.Elem())
	case *types.Signature:
		return "func" + l.signature(t)
	}
	return types.TypeString(t, func(p *types.Package) string {
		if p == l.pkg {
			return ""
		}
		return p.Path()
	})
}

func (l *lister) signature(s *types.Signature) string {
	text := l.typeParams(s.TypeParams()) + l.tuple(s.Params(), s.Variadic())
	switch s.Results().Len() {
	case 0:
		return text
	case 1:
		return text + " " + l.text(s.Results().At(0).Type())
	}
	return text + " " + l.tuple(s.Results(), false)
}

func (l *lister) tuple(t *types.Tuple, variadic bool) string {
	var parts []string
	for v := range t.Variables() {
		parts = append(parts, l.text(v.Type()))
	}
	n := len(parts)
	if variadic {
		if slice, ok := t.At(n - 1).Type().(*types.Slice); ok {
			parts[n-1] = "..." + l.text(slice.Elem())
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func (l *lister) typeParams(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var parts []string
	for p := range list.TypeParams() {
		parts = append(parts, p.Obj().Name()+" "+l.text(p.Constraint()))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
