package generator_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/scratch"
	"github.com/rategen/rategen/internal/testkit/seed"
	"pgregory.net/rapid"
)

// TestForward makes up interfaces, generates for them, and calls every method
// of every wrapper: arguments, results and errors must pass through unchanged,
// and a refused call must give zero values. All are compiled at once. Set
// RATEGEN_SEED to try others, and RATEGEN_TEST_FULL=1 to try more.
func TestForward(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	count := effort.Choose(30, 120)
	module := scratch.Module(t, "..")
	dir := filepath.Join(module, "forward")
	frame, err := os.ReadFile("testdata/forward/drive_test.go")
	if err != nil {
		t.Fatal(err)
	}
	scratch.Write(t, filepath.Join(dir, "drive_test.go"), string(frame))
	first := int(seed.First())
	made := &madeUp{}
	for i := range count {
		made.n = i
		rapid.Custom(made.draw).Example(first*count + i)
	}
	scratch.Write(t, filepath.Join(dir, "types.go"), madeUpTypes)
	scratch.Write(t, filepath.Join(dir, "made.go"), "package forward\n"+madeUpImports+made.ifaces.String())
	scratch.Write(t, filepath.Join(dir, "fakes_test.go"), "package forward\n\nimport \"github.com/rategen/rategen/runtime\"\n"+
		madeUpImports+made.fakes.String())
	if _, err := generator.Run(generator.Config{Dir: dir}); err != nil {
		t.Fatalf("%v\n%s", err, made.ifaces.String())
	}
	commands := [][]string{{"test", "-vet=off", "./forward"}}
	if effort.Full() { // after CI has vetted what the wrappers import
		commands = append(commands, []string{"vet", "./forward"})
	}
	for _, args := range commands {
		cmd := exec.Command("go", args...)
		cmd.Dir = module
		out, err := cmd.CombinedOutput()
		if err != nil {
			keep := filepath.Join(os.TempDir(), "rategen-forward")
			os.RemoveAll(keep)
			os.CopyFS(keep, os.DirFS(dir))
			t.Fatalf("%v: %v, see %s\n%s", cmd, err, keep, out)
		}
	}
}

const madeUpImports = `
import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
	"unsafe"
)

var (
	_ context.Context
	_ json.Number
	_ fmt.Stringer
	_ io.Reader
	_ http.Header
	_ time.Time
	_ unsafe.Pointer
)
`

const madeUpTypes = `package forward

type Struct struct {
	A int
	B string
	c *Struct
}

type Int int

type Text string

type Pair[A any, B comparable] struct {
	First  A
	Second B
}

type List[T any] []T

type Alias = map[string]*Struct

type Of[T any] = List[Pair[T, string]]

const size = 3
`

// A madeUp collects source text of made-up interfaces and what drives them.
type madeUp struct {
	n             int
	ifaces, fakes strings.Builder
	earlier       []madeIface
}

type madeIface struct {
	name    string
	tparams []string // their constraints
	methods []madeMethod
}

type madeMethod struct {
	name     string
	params   []string // types, of the arguments that the interface is used with
	results  []string
	variadic bool
	limited  bool
}

// A typeSet draws types; vars are the type parameters it may use.
type typeSet struct {
	t    *rapid.T
	vars []string
}

func pick(t *rapid.T, from ...string) string { return rapid.SampledFrom(from).Draw(t, "pick") }

var basicTypes = []string{
	"bool", "int", "int8", "uint64", "uintptr", "float32", "complex128", "string", "byte", "rune", "error", "any",
	"Struct", "Int", "Text", "Alias", "context.Context", "time.Duration", "time.Time", "json.Number", "http.Header",
	"unsafe.Pointer", "io.Reader", "fmt.Stringer",
}

var keyTypes = []string{"string", "int", "bool", "Text", "Int", "[2]byte", "time.Duration", "*Struct"}

func (s *typeSet) draw(depth int) string {
	if len(s.vars) > 0 && rapid.IntRange(0, 3).Draw(s.t, "var") == 0 {
		return pick(s.t, s.vars...)
	}
	if depth == 0 {
		return pick(s.t, basicTypes...)
	}
	next := func() string { return s.draw(depth - 1) }
	switch rapid.IntRange(0, 14).Draw(s.t, "kind") {
	case 0:
		return "*" + next()
	case 1:
		return "[]" + next()
	case 2:
		return pick(s.t, "[2]", "[size]", "[0]") + next()
	case 3:
		return "map[" + pick(s.t, keyTypes...) + "]" + next()
	case 4:
		return pick(s.t, "chan (", "<-chan (", "chan<- (") + next() + ")"
	case 5:
		return "func(" + next() + ", ..." + next() + ") (" + next() + ", error)"
	case 6:
		return "func(" + next() + ")"
	case 7:
		return "struct{ X, Y " + next() + "; Z " + next() + " `json:\"z\"`; Struct }"
	case 8:
		return "interface{ fmt.Stringer; Other(" + next() + ") " + next() + " }"
	case 9:
		return "Pair[" + next() + ", " + pick(s.t, keyTypes...) + "]"
	case 10:
		return "List[" + next() + "]"
	case 11:
		return "Of[" + next() + "]"
	}
	return pick(s.t, basicTypes...)
}

var paramNames = []string{
	"s", "w", "limited", "key", "key2", "limit", "limits", "err", "ctx", "runtime", "context", "time", "nil", "string", "int64", "len",
	"true", "next", "limiter", "v", "arg0", "arg1", "made", "T", "U", "Struct", "forward", "ärger", "_", "_", "a", "b",
}

// draw makes up one interface.
func (m *madeUp) draw(t *rapid.T) bool {
	iface := madeIface{name: fmt.Sprint("Made", m.n)}
	var arguments []string // what type parameters stand for when driven
	var vars []string
	for i := range rapid.IntRange(-2, 2).Draw(t, "tparams") {
		c := rapid.IntRange(0, 3).Draw(t, "constraint")
		iface.tparams = append(iface.tparams, []string{"any", "comparable", "~int | ~string", "interface{ fmt.Stringer; comparable }"}[c])
		arguments = append(arguments, []string{"Struct", "string", "Text", "time.Duration"}[c])
		vars = append(vars, []string{"T", "U"}[i])
	}
	types := &typeSet{t, vars}
	var body strings.Builder
	for i := range rapid.IntRange(1, 4).Draw(t, "methods") {
		m.method(&body, &iface, fmt.Sprintf("M%d_%d", m.n, i), types, vars, arguments)
	}
	if len(m.earlier) > 0 && rapid.Bool().Draw(t, "embeds") {
		e := rapid.SampledFrom(m.earlier).Draw(t, "embedded")
		if len(e.tparams) == 0 {
			fmt.Fprintf(&body, "\t%s\n", e.name)
			for _, method := range e.methods {
				method.limited = false // its directives are those of its own wrapper
				iface.methods = append(iface.methods, method)
			}
		}
	}
	extra := madeMethod{name: fmt.Sprintf("Limited%d", m.n), results: []string{"error"}, limited: true}
	fmt.Fprintf(&body, "\t//ratelimit:max=1 window=1h\n\t%s() error\n", extra.name)
	iface.methods = append(iface.methods, extra)

	decl := ""
	for i, c := range iface.tparams {
		decl += vars[i] + " " + c + ", "
	}
	if decl != "" {
		decl = "[" + strings.TrimSuffix(decl, ", ") + "]"
	}
	fmt.Fprintf(&m.ifaces, "\ntype %s%s interface {\n%s}\n", iface.name, decl, body.String())
	m.fake(iface, arguments)
	m.earlier = append(m.earlier, iface)
	return true
}

// method makes up one method.
func (m *madeUp) method(body *strings.Builder, iface *madeIface, name string, types *typeSet, vars, arguments []string) {
	t := types.t
	method := madeMethod{name: name, limited: rapid.Bool().Draw(t, "limited")}
	substitute := func(text string) string {
		// T and U stand alone in every type made up here.
		for i, v := range vars {
			text = replaceWord(text, v, arguments[i])
		}
		return text
	}
	var params, keys []string
	named := rapid.Bool().Draw(t, "named")
	used := map[string]bool{}
	n := rapid.IntRange(0, 4).Draw(t, "params")
	for i := range n {
		typ := types.draw(2)
		if i == 0 && rapid.Bool().Draw(t, "ctx") {
			typ = "context.Context"
		}
		method.variadic = i == n-1 && rapid.IntRange(0, 3).Draw(t, "variadic") == 0
		method.params = append(method.params, substitute(typ))
		name := pick(t, paramNames...)
		for used[name] && name != "_" {
			name += "x"
		}
		used[name] = true
		switch {
		case slices.Contains([]string{"bool", "int", "int8", "uint64", "string", "byte", "Int", "Text", "time.Duration", "json.Number", "uintptr"}, typ) && !method.variadic:
			keys = append(keys, fmt.Sprint("#", i))
		case strings.HasPrefix(typ, "[]") && !strings.HasPrefix(typ, "[]byte"):
			if !method.variadic {
				keys = append(keys, fmt.Sprintf("len(#%d)", i))
			}
		}
		if method.variadic {
			typ = "..." + typ
		}
		if named {
			typ = name + " " + typ
		}
		params = append(params, typ)
	}
	var results []string
	for range rapid.IntRange(0, 3).Draw(t, "results") {
		typ := types.draw(2)
		results = append(results, typ)
		method.results = append(method.results, substitute(typ))
	}
	if method.limited {
		results, method.results = append(results, "error"), append(method.results, "error")
		key := ""
		if len(keys) > 0 {
			key = " key=" + strings.Join(keys, ",")
		}
		fmt.Fprintf(body, "\t//ratelimit:max=1 window=1h%s%s\n", key, settlement(t, len(results)-1))
		if rapid.IntRange(0, 3).Draw(t, "inFlight") == 0 {
			fmt.Fprintf(body, "\t//ratelimit:max=9 algorithm=concurrency%s\n", key)
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "namedResults") == 0 {
		for i := range results {
			name := pick(t, append(paramNames, "decision", "error", "result", "result1")...)
			for used[name] && name != "_" {
				name += "x"
			}
			used[name] = true
			results[i] = name + " " + results[i]
		}
	}
	fmt.Fprintf(body, "\t%s(%s) (%s)\n", name, strings.Join(params, ", "), strings.Join(results, ", "))
	iface.methods = append(iface.methods, method)
}

// settlement makes up options that change the charge of a call when it is over,
// so that the next one is refused nevertheless. No error that is driven is nil.
func settlement(t *rapid.T, last int) string {
	refund := fmt.Sprintf(` refund="#result%d == nil"`, last)
	return pick(t, "", "", refund, refund, " settle=3", refund+" settle=2")
}

func replaceWord(text, word, by string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		letter := func(i int) bool {
			return i >= 0 && i < len(text) && (text[i] == '_' || text[i] == '.' || text[i] >= '0' && text[i] <= '9' || text[i]|0x20 >= 'a' && text[i]|0x20 <= 'z')
		}
		if strings.HasPrefix(text[i:], word) && (!letter(i-1) || strings.HasSuffix(text[:i], "...")) && !letter(i+len(word)) {
			out.WriteString(by)
			i += len(word) - 1
			continue
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// fake writes an implementation of an interface, and the case that drives it.
func (m *madeUp) fake(iface madeIface, arguments []string) {
	fmt.Fprintf(&m.fakes, "\ntype fake%s struct{ *recorder }\n", iface.name)
	var limited []string
	for _, method := range iface.methods {
		var params, args, results []string
		for i, p := range method.params {
			if method.variadic && i == len(method.params)-1 {
				p = "..." + p
			}
			params = append(params, fmt.Sprintf("a%d %s", i, p))
			args = append(args, fmt.Sprint("a", i))
		}
		for i, r := range method.results {
			results = append(results, fmt.Sprintf("given[%s](f.recorder, %d)", r, i))
		}
		fmt.Fprintf(&m.fakes, "func (f fake%s) %s(%s) (%s) {\n\tf.record(%s)\n\treturn %s\n}\n", iface.name, method.name,
			strings.Join(params, ", "), strings.Join(method.results, ", "), strings.Join(args, ", "), strings.Join(results, ", "))
		if method.limited {
			limited = append(limited, fmt.Sprintf("%q: true", method.name))
		}
	}
	args := ""
	if len(arguments) > 0 {
		args = "[" + strings.Join(arguments, ", ") + "]"
	}
	fmt.Fprintf(&m.fakes, "func init() {\n\twrappings = append(wrappings, wrapping{%q, func(r *recorder, l *runtime.Limiter) any { return NewRateLimited%s%s(fake%s{r}, l) }, map[string]bool{%s}})\n}\n",
		iface.name, iface.name, args, iface.name, strings.Join(limited, ", "))
}
