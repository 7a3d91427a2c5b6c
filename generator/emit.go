package generator

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dave/jennifer/jen"
)

// An emitter writes one generated file.
type emitter struct {
	file    *checkedFile
	imports *importSet
	names   map[string]bool // that declarations of the package must not have
}

// emit writes the generated files.
func (r *run) emit(files []*checkedFile) []output {
	if r.failed {
		return nil
	}
	outputs := make([]output, len(files))
	inParallel(len(files), func(i int) {
		f := files[i]
		e := &emitter{file: f, imports: newImportSet(f), names: r.namesAt(f)}
		content, err := e.render()
		if err != nil {
			r.at(f.src.ast.Package, "cannot write %s: %v; this is a bug of rategen", r.outputPath(f.src.path), err)
		}
		outputs[i] = output{r.outputPath(f.src.path), content}
		files[i] = nil // all that was known of it may go
	})
	return outputs
}

func sortOutputs(files []output) {
	slices.SortFunc(files, func(a, b output) int { return strings.Compare(a.path, b.path) })
}

func (e *emitter) render() ([]byte, error) {
	e.collectImports()
	f := jen.NewFile(e.file.home.Name())
	f.HeaderComment(header)
	if line := strings.TrimSpace(buildLines(e.file.content)); line != "" {
		f.HeaderComment("")
		f.HeaderComment(line)
	}
	f.Add(e.imports.decl())
	f.Line()
	if e.file.home != e.file.pkg.Types {
		f.Comment(fmt.Sprintf(declaredIn, e.file.pkg.Types.Path()))
		f.Line()
	}
	f.Comment("This code needs a runtime of version 0.1.0 or later.")
	f.Const().Id("_").Op("=").Add(e.runtime("IsAtLeastVersion0_1_0"))
	for _, w := range e.file.wrappers {
		e.wrapper(f, w)
	}
	var out bytes.Buffer
	if err := f.Render(&out); err != nil {
		return nil, err
	}
	// jennifer writes an empty header comment as "// ".
	return bytes.Replace(out.Bytes(), []byte(header+"\n//\n"), []byte(header+"\n\n"), 1), nil
}

// collectImports finds the packages that the file needs and settles their
// names.
func (e *emitter) collectImports() {
	s := e.imports
	taken := map[string]bool{"_": true}
	if e.file.home != e.file.pkg.Types {
		maps.Copy(taken, e.names)
	}
	for _, name := range e.file.home.Scope().Names() { // imports may repeat those of other files
		taken[name] = true
	}
	s.use(runtimePath, "runtime")
	if len(e.file.wrappers) > 0 {
		s.usePackage(e.file.pkg.Types)
	}
	useType := func(t types.Type) {
		types.TypeString(t, func(p *types.Package) string { s.usePackage(p); return "" })
	}
	for _, w := range e.file.wrappers {
		for p := range w.tparams.TypeParams() {
			taken[p.Obj().Name()] = true
			useType(p.Constraint())
		}
		for _, l := range w.limits {
			s.use("time", "time")
			taken[l.varName] = true
			if len(l.rule.adaptive) > 0 {
				s.use(adaptivePath, "adaptive")
			}
			if l.max != nil {
				s.useExpr(l.max)
			}
		}
		for _, m := range w.methods {
			useType(m.sig)
			if len(m.uses) > 0 && m.context() == nil {
				s.use("context", "context")
			}
			for _, u := range m.uses {
				u.eachExpr(s.useExpr)
			}
		}
	}
	s.settle(taken)
}

// context returns the parameter that is the call's context, or nil.
func (m *method) context() *param {
	for _, p := range m.params {
		if n, ok := types.Unalias(p.typ).(*types.Named); ok && n.Obj().Name() == "Context" && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "context" {
			return p
		}
	}
	return nil
}

// eachExpr visits the expressions of a limit that depend on the call.
func (u *use) eachExpr(visit func(*checkedExpr)) {
	for _, p := range u.parts {
		visit(p.expr)
	}
	for _, e := range []*checkedExpr{u.cost, u.max, u.when} {
		if e != nil {
			visit(e)
		}
	}
}

func (e *emitter) runtime(name string) *jen.Statement {
	return jen.Id(e.imports.name(runtimePath)).Dot(name)
}

// ruleFields returns the fields of a rule, in the order of its declaration.
func (e *emitter) ruleFields(l *limit) []jen.Code {
	var fields []jen.Code
	field := func(name string, v jen.Code) { fields = append(fields, jen.Line().Id(name).Op(":").Add(v)) }
	field("Name", jen.Lit(l.name))
	field("Source", jen.Lit(l.source))
	field("Prefix", jen.Lit(l.prefix))
	field("Window", e.duration(l.rule.window))
	switch {
	case l.dynamic:
		// The max comes with each call.
	case l.max == nil:
		field("Max", jen.Op(fmt.Sprint(defaultMax)))
	default:
		field("Max", jen.Op(e.constant(l.max)))
	}
	e.algorithmFields(l.rule, field)
	if l.rule.message != "" {
		field("Message", jen.Lit(l.rule.message))
	}
	if l.rule.fail != "" {
		field("Fail", e.runtime("Fail"+upperFirst(l.rule.fail)))
	}
	if len(l.rule.adaptive) > 0 {
		field("Adaptive", e.scaler(l.rule))
	}
	return append(fields, jen.Line())
}

// constant writes a constant expression as an int64: a number as it is, a
// named constant by its name, so that the rule follows it.
func (e *emitter) constant(x *checkedExpr) string {
	named := false
	hidden := false // from the package that the code is written to
	x.eachOutside(func(_ *ast.Ident, obj types.Object) {
		hidden = hidden || isPackageLevel(obj) && obj.Pkg() != e.imports.own && !obj.Exported()
		_, isConst := obj.(*types.Const)
		_, isPkg := obj.(*types.PkgName)
		named = named || isConst || isPkg
	})
	if !named || hidden {
		return constant.ToInt(x.con).ExactString()
	}
	text := e.exprString(x, nil)
	if b, ok := x.typ.(*types.Basic); ok && (b.Kind() == types.Int64 || b.Kind() == types.UntypedInt) {
		return text
	}
	return "int64(" + text + ")"
}

// duration writes a duration in its largest whole unit.
func (e *emitter) duration(d time.Duration) jen.Code {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"}, {time.Microsecond, "Microsecond"}, {1, "Nanosecond"}} {
		if d%unit.size != 0 {
			continue
		}
		name := jen.Id(e.imports.name("time")).Dot(unit.name)
		if n := int64(d / unit.size); n > 1 {
			return jen.Op(fmt.Sprint(n)).Op("*").Add(name)
		}
		return name
	}
	return nil
}

func indefinite(name string) string {
	if strings.ContainsRune("aeioAEIO", []rune(name)[0]) || strings.HasPrefix(strings.ToLower(name), "un") {
		return "an"
	}
	return "a"
}

// comment writes a comment, broken into lines.
func comment(g *jen.Group, text string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len("// ")+len(line)+1+len(word) > 77 {
			g.Comment(line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	g.Comment(line)
}
