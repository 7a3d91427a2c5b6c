package differential

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A method has limits whose options are random expressions.
type method struct {
	name    string
	options []option
	second  bool // whether it has a second limit
}

type option struct{ name, text string }

// fields are those of harness.Case, and the letters that functions of expressions
// begin with.
var fields = map[string]string{"when": "When", "key": "Key", "cost": "Cost", "max": "Max", "settle": "Settle", "hold": "Hold", "deny": "Deny", "refund": "Refund"}

// newMethod returns the i-th method of a package.
func (w *world) newMethod(i int) method {
	m := method{name: fmt.Sprint("M", i), second: w.IntN(5) == 0}
	add := func(names ...string) {
		for _, name := range names {
			m.options = append(m.options, option{name, w.newOption(name)})
		}
	}
	switch w.IntN(12) {
	case 0, 1:
		add("key")
	case 2, 3, 4:
		add("when")
	case 5, 6:
		add("refund")
	case 7:
		add(pick(w.Rand, []string{"cost", "max"}))
	case 8:
		add(pick(w.Rand, []string{"settle", "hold", "deny"}))
	case 9:
		add("when", "key")
	case 10:
		add("when", "refund")
	case 11:
		add("when", "key", "cost", "refund", "settle", "hold")
	}
	return m
}

func (w *world) newOption(name string) string {
	s := &scope{world: w, vars: w.params()}
	depth := 2 + w.IntN(3)
	switch name {
	case "refund", "settle", "hold":
		s.vars = append(s.vars, w.results()...)
	}
	switch name {
	case "when", "refund":
		return s.write("bool", depth)
	case "key":
		return s.write(pick(w.Rand, basics), depth)
	case "hold":
		return "pause(" + s.write("int", depth) + ")"
	case "deny":
		return "answer(" + s.write("string", depth) + ", #err)"
	}
	x := s.write("int", depth)
	if name == "settle" { // whose sign matters
		x = pick(s.Rand, []string{"", "", "(-2)*", "3*", "-1*", "2-"}) + s.paren(x)
	}
	return x
}

// directive writes the method's limits.
func (m method) directive() string {
	line := "//ratelimit:"
	for i, o := range m.options {
		if i > 0 {
			line += " "
		}
		line += o.name + "=" + strconv.Quote(o.text)
	}
	if m.second {
		line += "\n\t//ratelimit:name=plain max=100"
	}
	return line
}

// plain returns an expression as plain Go has it.
func plain(text string) string { return strings.ReplaceAll(text, "#", "") }

// lenient returns a condition whose operands are false if they cannot be
// evaluated.
func lenient(text string) string {
	x, err := parser.ParseExpr(plain(text))
	if err != nil {
		return "false"
	}
	var write func(ast.Expr) string
	write = func(x ast.Expr) string {
		if b, ok := ast.Unparen(x).(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
			return "(" + write(b.X) + " " + b.Op.String() + " " + write(b.Y) + ")"
		}
		var leaf strings.Builder
		printer.Fprint(&leaf, token.NewFileSet(), x)
		return "h.Is(func() bool { return " + leaf.String() + " })"
	}
	return write(x)
}

// A pkg is one package of the program.
type pkg struct {
	name    string
	world   *world
	methods []method
}

func newPkg(i int, seed uint64, count int) *pkg {
	p := &pkg{name: fmt.Sprintf("p%04d", i), world: newWorld(rand.New(rand.NewPCG(seed, uint64(i))), i%2 == 1)}
	for k := range count {
		p.methods = append(p.methods, p.world.newMethod(k))
	}
	return p
}

func list(vars []variable, write func(variable) string, sep string) string {
	var all []string
	for _, v := range vars {
		all = append(all, write(v))
	}
	return strings.Join(all, sep)
}

// declarations writes the interface, one method and its directives after
// another. It returns the line of each method's first directive, too.
func (p *pkg) declarations() (string, []int) {
	params := list(p.world.params(), func(v variable) string { return v.name + " " + v.typ }, ", ")
	name := "I"
	if p.world.generic {
		name += typeParams
	}
	text := "package " + p.name + "\n\ntype " + name + " interface {\n"
	var lines []int
	for _, m := range p.methods {
		lines = append(lines, strings.Count(text, "\n")+1)
		text += "\t" + m.directive() + "\n\t" + m.name + "(" + params + ") (r *T0, err error)\n"
	}
	return text + "}\n", lines
}

// support writes all else that the methods need.
func (p *pkg) support() string {
	w := p.world
	params, results, args := w.params(), w.results(), ""
	for i := range params {
		params[i].typ = concrete(params[i].typ)
	}
	if w.generic {
		args = "[Iface, Ints]"
	}
	decl := func(v variable) string { return v.name + " " + v.typ }
	all := append(params, results...)
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\nimport (\n\"errors\"\n\"fmt\"\n\"math/rand/v2\"\n\"time\"\n\nh \"example.com/x/harness\"\n\"github.com/rategen/rategen/runtime\"\n)\n\n", p.name)
	b.WriteString(support)
	b.WriteString(w.source())
	values := map[string]string{"string": "r.string()", "int": "r.int()", "bool": "r.bool()", "[]int": "r.ints()", "Ints": "r.ints()", "Iface": "r.iface(3)", "error": "r.err()"}
	value := func(v variable) string {
		t := v.typ
		if values[t] != "" {
			return values[t]
		}
		if strings.HasPrefix(t, "[]*") {
			return fmt.Sprintf("[]%s{r.p%s(3), r.p%s(3)}[:r.IntN(3)]", t[2:], t[3:], t[3:])
		}
		if strings.HasPrefix(t, "map") {
			return fmt.Sprintf("%s{r.string(): r.p%s(3)}", t, t[len("map[string]*"):])
		}
		if strings.HasPrefix(t, "func") {
			return "r.fn" + t[len("func(int) *"):] + "(3)"
		}
		if strings.HasPrefix(t, "*") {
			return "r.p" + t[1:] + "(4)"
		}
		return "*r.v" + v.typ + "(3)"
	}
	fmt.Fprintf(&b, "type input struct { %s }\n", list(all, decl, "; "))
	fmt.Fprintf(&b, "func newInput(r *rnd) *input { return &input{%s} }\n", list(all, func(v variable) string { return v.name + ": " + value(v) }, ", "))
	fmt.Fprintf(&b, "type hand = func(%s) any\n", list(all, decl, ", "))
	fmt.Fprintf(&b, "func (in *input) with(f hand) func() any { if f == nil { return nil }; return func() any { return f(%s) } }\n", list(all, func(v variable) string { return "in." + v.name }, ", "))
	fmt.Fprintf(&b, "func (in *input) refused(f hand) func() any { if f == nil { return nil }; return func() any { return f(%s, nil, runtime.ErrRefused) } }\n", list(params, func(v variable) string { return "in." + v.name }, ", "))
	fmt.Fprintf(&b, "type limitedI = I%s\nfunc limited(n next, l *runtime.Limiter) limitedI { return NewRateLimitedI%s(n, l) }\n", args, args)
	fmt.Fprintf(&b, "func (in *input) call(s limitedI, f func(limitedI, %s) (*T0, error)) error { _, err := f(s, %s); return err }\n",
		list(params, func(v variable) string { return v.typ }, ", "), list(params, func(v variable) string { return "in." + v.name }, ", "))
	fmt.Fprintf(&b, "type entry struct { text string; When, Key, Cost, Max, Settle, Hold, Deny, Refund, Lenient hand; call func(limitedI, %s) (*T0, error) }\n", list(params, func(v variable) string { return v.typ }, ", "))
	b.WriteString("type next struct{ in *input }\n")
	for _, m := range p.methods {
		fmt.Fprintf(&b, "func (p next) %s(%s) (*T0, error) { return p.in.r, p.in.err }\n", m.name, list(params, func(v variable) string { return v.typ }, ", "))
	}
	entries := ""
	for _, m := range p.methods {
		entries += fmt.Sprintf("{text: %q, call: limitedI.%s", p.name+"."+m.name+": "+m.directive(), m.name)
		for _, o := range m.options {
			name := fields[o.name] + m.name
			entries += ", " + fields[o.name] + ": " + name
			text := "return " + plain(o.text)
			if o.name == "deny" {
				text = "_, e := " + plain(o.text) + "; return e"
			}
			fmt.Fprintf(&b, "func %s(%s) any { %s }\n", name, list(all, decl, ", "), text)
			if o.name == "refund" {
				fmt.Fprintf(&b, "func Lenient%s(%s) any { return %s }\n", m.name, list(all, decl, ", "), lenient(o.text))
				entries += ", Lenient: Lenient" + m.name
			}
		}
		entries += "},\n"
	}
	fmt.Fprintf(&b, "var entries = []entry{\n%s}\n", entries)
	return b.String()
}
