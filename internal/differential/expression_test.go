package differential

import (
	"fmt"
	"strings"
)

// A scope writes random expressions over parameters.
type scope struct {
	*world
	vars []variable
}

// params are those of every method, and results what it returns.
func (w *world) params() []variable {
	t := func(i int) string { return w.structs[i].name }
	all := []variable{
		{"a", "*" + t(0)}, {"b", t(1)}, {"c", "*" + t(2)}, {"s", "string"}, {"n", "int"}, {"ok", "bool"}, {"on", "bool"},
		{"xs", "[]*" + t(1)}, {"is", "[]int"}, {"m", "map[string]*" + t(2)}, {"i", "Iface"}, {"f", "func(int) *" + t(3)},
	}
	if w.generic {
		all = append(all, variable{"k", "K"}, variable{"l", "K"}, variable{"v", "V"})
	}
	return all
}

// typeParams are those of a generic interface. K stands for an interface, whose values may be nil.
const typeParams = "[K Keyed, V ~[]int]"

// concrete returns the type that a type parameter stands for, or else the type.
func concrete(typ string) string {
	switch typ {
	case "K":
		return "Iface"
	case "V":
		return "Ints"
	}
	return typ
}

func (w *world) results() []variable {
	return []variable{{"r", "*" + w.structs[0].name}, {"err", "error"}}
}

// write returns an expression of a type. It is at most so deep.
func (s *scope) write(typ string, depth int) string {
	var ways []func() string
	way := func(weight int, f func() string) {
		for range weight {
			ways = append(ways, f)
		}
	}
	for _, v := range s.vars {
		if v.typ == typ {
			way(2, func() string { return "#" + v.name })
		}
	}
	if depth <= 0 {
		way(1, func() string { return s.literal(typ) })
		return pick(s.Rand, ways)()
	}
	less := func(typ string) string { return s.write(typ, depth-1) }
	for _, t := range s.structs {
		for _, f := range t.fields {
			if f.typ == typ {
				way(1, func() string { return s.operand(t, depth-1, true) + "." + f.name })
			}
			if f.typ == "func(int) "+typ {
				way(1, func() string { return s.operand(t, depth-1, true) + "." + f.name + "(" + less("int") + ")" })
			}
			if f.typ == "map[string]"+typ {
				way(1, func() string { return s.operand(t, depth-1, true) + "." + f.name + "[" + less("string") + "]" })
			}
			if f.typ == "[]"+typ {
				way(1, func() string { return fmt.Sprintf("%s.%s[%d]", s.operand(t, depth-1, true), f.name, s.IntN(2)) })
			}
		}
		for _, m := range t.methods {
			if m.result == typ && (!m.acceptsNil || strings.Contains(m.name, t.name)) {
				way(1, func() string {
					if m.pointer && !m.acceptsNil && strings.Contains(m.name, t.name) && s.IntN(8) == 0 {
						return "(*" + t.name + ")." + m.name + "(" + strings.Join(append([]string{less("*" + t.name)}, s.arguments(m, depth-1)...), ", ") + ")"
					}
					return s.operand(t, depth-1, !m.acceptsNil && !m.pointer) + "." + m.name + "(" + strings.Join(s.arguments(m, depth-1), ", ") + ")"
				})
			}
		}
	}
	for _, f := range s.funcs {
		if f.result == typ {
			way(2, func() string { return f.name + "(" + strings.Join(s.arguments(f, depth-1), ", ") + ")" })
		}
		if f.result == "func(int) "+typ {
			way(1, func() string {
				return f.name + "(" + strings.Join(s.arguments(f, depth-1), ", ") + ")(" + less("int") + ")"
			})
		}
	}
	if s.isPointer(typ) {
		way(1, func() string { return "(&" + typ[1:] + "{N" + typ[2:] + ": " + less("int") + "})" })
	}
	switch typ {
	case "bool":
		s.booleans(way, less, depth)
	case "int":
		way(2, func() string {
			return fmt.Sprintf("%s %s %s", s.paren(less("int")), pick(s.Rand, []string{"+", "-", "*"}), s.paren(less("int")))
		})
		way(2, func() string { return "len(" + less(pick(s.Rand, []string{"string", "[]int"})) + ")" })
		way(1, func() string { return "min(" + less("int") + ", " + less("int") + ")" })
		way(1, func() string { return "-" + s.paren(less("int")) })
		way(2, func() string { return fmt.Sprintf("%s[%d]", less("[]int"), s.IntN(2)) })
		for _, t := range s.structs {
			for _, f := range t.fields {
				if strings.HasSuffix(f.typ, "[3]int") {
					way(1, func() string { return fmt.Sprintf("%s.%s[%d]", s.operand(t, depth-1, true), f.name, s.IntN(3)) })
				}
				if f.typ == "Point" {
					way(1, func() string { return s.operand(t, depth-1, true) + "." + f.name + ".X" })
				}
			}
		}
		way(1, func() string { return fmt.Sprintf("[]int{%s, %s}[%d]", less("int"), less("int"), s.IntN(2)) })
		if s.generic {
			way(2, func() string { return "len(#v)" })
			way(2, func() string { return fmt.Sprintf("#v[%d]", s.IntN(2)) })
		}
	case "string":
		way(1, func() string { return s.paren(less("string")) + " + " + s.paren(less("string")) })
		way(2, func() string { return s.paren(less("Iface")) + ".Text()" })
		way(1, func() string { return "string([]byte(" + less("string") + "))" })
		if s.generic {
			way(4, func() string { return s.write("K", 0) + ".Text()" })
			way(2, func() string { return "textOf(" + s.write("K", 0) + ")" })
		}
	}
	return pick(s.Rand, ways)()
}

func (s *scope) booleans(way func(int, func() string), less func(string) string, depth int) {
	pointers := []string{"*" + s.anyStruct(), "Iface"}
	for _, v := range s.vars {
		if v.typ == "error" {
			pointers = append(pointers, "error", "error")
		}
	}
	way(12, func() string {
		return s.paren(less("bool")) + pick(s.Rand, []string{" && ", " || "}) + s.paren(less("bool"))
	})
	way(8, func() string { return s.tested(depth) })
	way(3, func() string { return "!" + s.paren(less("bool")) })
	way(2, func() string {
		return s.paren(less("int")) + pick(s.Rand, []string{" > ", " == ", " <= "}) + s.paren(less("int"))
	})
	way(2, func() string {
		return s.paren(less("string")) + pick(s.Rand, []string{" == ", " != "}) + s.paren(less("string"))
	})
	way(2, func() string {
		return s.paren(less(pick(s.Rand, pointers))) + pick(s.Rand, []string{" == nil", " != nil"})
	})
	way(1, func() string {
		return s.paren(less("bool")) + pick(s.Rand, []string{" == ", " != "}) + s.paren(less("bool"))
	})
	if s.generic {
		way(2, func() string { return "#v" + pick(s.Rand, []string{" == nil", " != nil"}) })
	}
	for _, t := range s.structs {
		for _, f := range t.fields {
			if f.typ == "Point" {
				way(1, func() string { return s.operand(t, depth-1, true) + "." + f.name + " == Point{1, " + less("int") + "}" })
			}
		}
	}
}

// tests are conditions under which %[1]s is not nil, or that look as if they were;
// %[2]s is another condition.
var tests = []string{
	"%[1]s != nil && ", "%[1]s == nil || ", "!(%[1]s == nil) && ", "nil != %[1]s && ",
	"%[1]s != nil && %[2]s && ", "%[1]s == nil || %[2]s || ", "(%[1]s == nil || %[2]s) || ",
	"!(%[1]s == nil || %[2]s) && ", "!(%[1]s != nil && %[2]s) || ",
	"(%[1]s != nil || %[2]s) && ", "(%[1]s == nil || %[2]s) && ", "(%[1]s != nil && %[2]s) || ", "(%[1]s == nil && %[2]s) || ", "!(%[1]s == nil && %[2]s) && ",
}

// lengths are the same for an index of %[1]s.
var lengths = []string{
	"len(%[1]s) > 0 && ", "len(%[1]s) > 1 && ", "len(%[1]s) != 0 && ", "len(%[1]s) >= 1 && ", "len(%[1]s) == 2 && ",
	"1 < len(%[1]s) && ", "0 == len(%[1]s) || ", "len(%[1]s) < 2 || ", "len(%[1]s) <= 1 || ", "!(len(%[1]s) >= 2) || ",
}

// tested writes a test and what it protects, as people write it.
func (s *scope) tested(depth int) string {
	if s.IntN(3) == 0 {
		x := s.paren(s.write("[]int", depth-2))
		return fmt.Sprintf(pick(s.Rand, lengths)+"%[1]s[%[2]d] == %[3]s", x, s.IntN(2), s.paren(s.write("int", depth-2)))
	}
	t := pick(s.Rand, s.structs)
	x, other := s.write("*"+t.name, depth-2), s.paren(s.write("bool", depth-2))
	var fields []string
	for _, f := range t.fields {
		if f.typ == "bool" {
			fields = append(fields, "."+f.name)
		}
		if f.typ == "int" {
			fields = append(fields, "."+f.name+" > 2")
		}
	}
	return fmt.Sprintf(pick(s.Rand, tests)+"%[1]s%.0[2]s%[3]s", x, other, pick(s.Rand, fields))
}

// operand writes what a field or method of a struct is selected from. With value
// it may be a value, and else it is a call.
func (s *scope) operand(t *structType, depth int, value bool) string {
	if !value {
		for range 9 * min(max(depth, 0), 1) {
			if x := s.write("*"+t.name, depth); strings.HasSuffix(x, ")") && !strings.HasPrefix(x, "(") {
				return x
			}
		}
		return "(&" + t.name + "{})"
	}
	for _, v := range s.vars {
		if v.typ == t.name && s.IntN(2) == 0 {
			return "#" + v.name
		}
	}
	if s.IntN(6) == 0 {
		return "(*" + s.write("*"+t.name, depth) + ")"
	}
	return s.write("*"+t.name, depth)
}

func (s *scope) arguments(f function, depth int) []string {
	var args []string
	for _, typ := range f.params {
		args = append(args, s.write(typ, depth))
	}
	return args
}

// paren puts an expression with operators into parentheses, most of the time
// where it could do without.
func (s *scope) paren(x string) string {
	if strings.ContainsAny(x, " ") || strings.HasPrefix(x, "-") {
		return "(" + x + ")"
	}
	return x
}

func (s *scope) literal(typ string) string {
	switch typ {
	case "int":
		return fmt.Sprint(s.IntN(4))
	case "string":
		return fmt.Sprintf("%q", pick(s.Rand, []string{"", "a", "b"}))
	case "bool":
		return "#ok"
	case "[]int":
		return "[]int{#n}"
	case "Iface":
		return "#i"
	case "K":
		return "#k"
	case "error":
		return "#err"
	}
	if s.isPointer(typ) {
		return "(&" + typ[1:] + "{})"
	}
	return "#s"
}
