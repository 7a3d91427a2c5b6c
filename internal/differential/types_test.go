package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A world is a package of random types and functions, in whose terms random
// expressions are written.
type world struct {
	*rand.Rand
	structs []*structType
	funcs   []function
	generic bool // its interface has type parameters, see typeParams
}

type structType struct {
	name    string
	fields  []variable // promoted ones too
	methods []function
	own     []string // declarations of its fields
	build   []string // the fields of a random value
}

// A variable is something of a type that can be written.
type variable struct{ name, typ string }

// A function is one of the package, or a method.
type function struct {
	name, result string
	params       []string
	pointer      bool // its receiver is one
	acceptsNil   bool
}

const (
	structCount = 4
	funcCount   = 8
)

// basics are the types of expressions beside structs and pointers to them.
var basics = []string{"int", "string", "bool"}

func newWorld(r *rand.Rand, generic bool) *world {
	w := &world{Rand: r, generic: generic}
	for i := range structCount {
		w.structs = append(w.structs, &structType{name: fmt.Sprint("T", i)})
	}
	for i := structCount - 1; i >= 0; i-- { // a struct may embed later ones
		w.fillStruct(i)
	}
	for i := range funcCount {
		w.funcs = append(w.funcs, w.newFunc(fmt.Sprint("f", i)))
	}
	return w
}

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// anyStruct returns the name of a struct.
func (w *world) anyStruct() string { return pick(w.Rand, w.structs).name }

// isPointer reports whether a type is a pointer to one of the structs.
func (w *world) isPointer(typ string) bool { return strings.HasPrefix(typ, "*T") }

// fillStruct gives a struct its fields and methods.
func (w *world) fillStruct(i int) {
	s := w.structs[i]
	add := func(kind, typ, value string) {
		name := fmt.Sprint(kind, i)
		s.fields = append(s.fields, variable{name, typ})
		s.own = append(s.own, name+" "+typ)
		s.build = append(s.build, name+": "+value)
	}
	p := func() string { return "*" + w.anyStruct() }
	pointer := func(typ string) string { return "r.p" + typ[1:] + "(d)" }
	add("N", "int", "r.int()")
	add("S", "string", "r.string()")
	add("Ok", "bool", "r.bool()")
	one, two := p(), p()
	add("P", one, pointer(one))
	add("Q", two, pointer(two))
	for _, kind := range w.Perm(9)[:4] {
		t := p()
		switch kind {
		case 0:
			add("Xs", "[]"+t, "["+"]"+t+"{"+pointer(t)+", "+pointer(t)+"}[:r.IntN(3)]")
		case 1:
			add("Ns", "[]int", "r.ints()")
		case 2:
			add("Arr", "[3]int", "[3]int{1, r.int(), 3}")
		case 3:
			add("Ptr", "*[3]int", "r.array()")
		case 4:
			add("By", "map[string]"+t, "map[string]"+t+"{r.string(): "+pointer(t)+"}")
		case 5:
			add("Any", "Iface", "r.iface(d)")
		case 6:
			add("Do", "func(int) "+t, "r.fn"+t[1:]+"(d)")
		case 7:
			add("Pt", "Point", "Point{r.int(), r.int()}")
		case 8:
			if i+1 < structCount {
				add("V", w.structs[i+1].name, "*r.v"+w.structs[i+1].name+"(d)")
			}
		}
	}
	if i+1 < structCount && w.IntN(2) == 0 {
		e := pick(w.Rand, w.structs[i+1:])
		s.fields = append(s.fields, e.fields...)
		s.methods = append(s.methods, e.methods...)
		if w.IntN(3) > 0 {
			s.own = append(s.own, "*"+e.name)
			s.build = append(s.build, e.name+": r.p"+e.name+"(d)")
		} else {
			s.own = append(s.own, e.name)
			s.build = append(s.build, e.name+": *r.v"+e.name+"(d)")
		}
	}
	for k, kind := range []string{"M", "V", "Get"} {
		f := w.newFunc(fmt.Sprint(kind, s.name, k))
		f.pointer, f.acceptsNil = kind != "V", kind == "Get"
		s.methods = append(s.methods, f)
	}
}

func (w *world) newFunc(name string) function {
	f := function{name: name, result: pick(w.Rand, append(basics, "bool", "*"+w.anyStruct(), "*"+w.anyStruct(), "*"+w.anyStruct(), "[]int", "Iface", "func(int) *"+w.anyStruct()))}
	for range w.IntN(3) {
		f.params = append(f.params, pick(w.Rand, append(basics, "*"+w.anyStruct())))
	}
	return f
}

// source writes the types and functions.
func (w *world) source() string {
	var b strings.Builder
	for _, s := range w.structs {
		fmt.Fprintf(&b, "type %s struct {\n%s\n}\n", s.name, strings.Join(s.own, "\n"))
		fmt.Fprintf(&b, "func (t *%s) Text() string { h.Call(%q, t != nil); return t.S%s }\n", s.name, s.name+".Text", s.name[1:])
		fmt.Fprintf(&b, "func (r *rnd) v%s(d int) *%s { d--; return &%s{%s} }\n", s.name, s.name, s.name, strings.Join(s.build, ", "))
		fmt.Fprintf(&b, "func (r *rnd) p%s(d int) *%s { if d <= 0 || r.IntN(4) == 0 { return nil }; return r.v%s(d) }\n", s.name, s.name, s.name)
		fmt.Fprintf(&b, "func (r *rnd) fn%s(d int) func(int) *%s { if r.IntN(3) == 0 { return nil }; v := r.p%s(d)\nreturn func(n int) *%s { h.Call(\"func\", n); return v } }\n", s.name, s.name, s.name, s.name)
		fmt.Fprintf(&b, "var pool%s = [...]*%s{nil, fresh().v%s(3), fresh().v%s(3), fresh().v%s(2)}\n", s.name, s.name, s.name, s.name, s.name)
		for _, m := range s.methods {
			if strings.Contains(m.name, s.name) {
				w.writeFunc(&b, s.name, m)
			}
		}
	}
	fmt.Fprintf(&b, "func (r *rnd) iface(d int) Iface { if d <= 0 || r.IntN(3) == 0 { return nil }; return r.v%s(d) }\n", w.structs[0].name)
	for _, f := range w.funcs {
		w.writeFunc(&b, "", f)
	}
	return b.String()
}

// writeFunc writes a function whose result depends on its arguments, and that
// panics for some.
func (w *world) writeFunc(b *strings.Builder, recv string, f function) {
	receiver, use, args := "", "n := 0\n", ""
	name := f.name
	if recv != "" {
		name = recv + "." + name
		if f.acceptsNil {
			receiver, use = "(t *"+recv+") ", "n := 0\nif t != nil { n = t.N"+recv[1:]+" }\n"
			args = ", t != nil"
		} else if f.pointer {
			receiver, use = "(t *"+recv+") ", "n := t.N"+recv[1:]+"\n"
		} else {
			receiver, use = "(t "+recv+") ", "n := t.N"+recv[1:]+"\n"
		}
	}
	var params []string
	for i, typ := range f.params {
		p := fmt.Sprint("p", i)
		params = append(params, p+" "+typ)
		switch {
		case typ == "int":
			args, use = args+", "+p, use+"n += "+p+"\n"
		case w.isPointer(typ):
			args, use = args+", "+p+" != nil", use+"if "+p+" != nil { n += "+p+".N"+typ[2:]+" }\n"
		case typ == "bool":
			args, use = args+", "+p, use+"if "+p+" { n++ }\n"
		default:
			args, use = args+", "+p, use+"n += len("+p+")\n"
		}
	}
	fmt.Fprintf(b, "func %s%s(%s) %s {\n%sh.Call(%q%s)\nh.Boom(n)\nif n < 0 { n = -n }\n", receiver, f.name, strings.Join(params, ", "), f.result, use, name, args)
	switch {
	case f.result == "int":
		b.WriteString("return n % 7\n")
	case f.result == "string":
		b.WriteString("return strs[n%len(strs)]\n")
	case f.result == "bool":
		b.WriteString("return n%2 == 0\n")
	case f.result == "[]int":
		b.WriteString("return []int{n, 1, 2}[:n%4]\n")
	case f.result == "Iface":
		fmt.Fprintf(b, "if n%%3 == 0 { return nil }\nreturn pool%s[1+n%%3]\n", w.structs[0].name)
	case strings.HasPrefix(f.result, "func"):
		t := f.result[len("func(int) *"):]
		fmt.Fprintf(b, "if n%%3 == 0 { return nil }\nreturn func(k int) *%s { h.Call(\"made\", k); return pool%s[(n+k)&3] }\n", t, t)
	default:
		fmt.Fprintf(b, "return pool%s[n&3]\n", f.result[1:])
	}
	b.WriteString("}\n")
}
